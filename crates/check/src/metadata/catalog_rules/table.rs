//! The references between base tables. Each reference is intact for every row of 137 data files of versions 611 to 998,
//! ten of them created by SQL Server 2000, and of 62 databases in backups. The numbers in comments say on how many rows
//! of the data files a reference was tested. The classes of sysclsobjs, syssingleobjrefs and similar tables are
//! explained in docs/format/catalog.md#references and docs/format/catalog.md#classes, or in the documentation of the
//! catalog view.
//!
//! A reference is `Unproven` in two cases. In the first case, few rows have the reference. In the second case, a change
//! could break the reference, and it is unknown whether the engine refuses such a change or adjusts the reference. For
//! example, an altered view may lose a column that others refer to by name or property.

use findings::registry;

use super::rules::Only::{Above, Below, Bit, Is, Not, Type};
use super::rules::Violation::{Alone, Broker, Dangling, Lacks, OfNothing, Unproven};
use super::rules::{Base, Classes, Keys, Reference, Rows};

static SYSROWSETS: Base = Base { id: 5, name: "sysrowsets", since: 0 };
static SYSALLOCUNITS: Base = Base { id: 7, name: "sysallocunits", since: 0 };
static SYSPRUFILES: Base = Base { id: 24, name: "sysprufiles", since: 655 };
static SYSOWNERS: Base = Base { id: 27, name: "sysowners", since: 0 };
static SYSPRIVS: Base = Base { id: 29, name: "sysprivs", since: 0 };
static SYSSCHOBJS: Base = Base { id: 34, name: "sysschobjs", since: 0 };
static SYSCOLPARS: Base = Base { id: 41, name: "syscolpars", since: 0 };
static SYSNSOBJS: Base = Base { id: 44, name: "sysnsobjs", since: 0 };
static SYSXPROPS: Base = Base { id: 49, name: "sysxprops", since: 0 };
static SYSCERTS: Base = Base { id: 46, name: "syscerts", since: 0 };
static SYSSCALARTYPES: Base = Base { id: 50, name: "sysscalartypes", since: 0 };
static SYSIDXSTATS: Base = Base { id: 54, name: "sysidxstats", since: 0 };
static SYSISCOLS: Base = Base { id: 55, name: "sysiscols", since: 0 };
static SYSBINOBJS: Base = Base { id: 58, name: "sysbinobjs", since: 0 };
static SYSOBJVALUES: Base = Base { id: 60, name: "sysobjvalues", since: 0 };
static SYSCLSOBJS: Base = Base { id: 64, name: "sysclsobjs", since: 0 };
static SYSRTS: Base = Base { id: 69, name: "sysrts", since: 0 };
static SYSGUIDREFS: Base = Base { id: 78, name: "sysguidrefs", since: 0 };
static SYSOBJKEYCRYPTS: Base = Base { id: 94, name: "sysobjkeycrypts", since: 0 };
static SYSSINGLEOBJREFS: Base = Base { id: 74, name: "syssingleobjrefs", since: 0 };
static SYSMULTIOBJREFS: Base = Base { id: 75, name: "sysmultiobjrefs", since: 0 };
static SYSQNAMES: Base = Base { id: 90, name: "sysqnames", since: 0 };
static SYSXMLCOMPONENT: Base = Base { id: 91, name: "sysxmlcomponent", since: 0 };
static SYSXMLFACET: Base = Base { id: 92, name: "sysxmlfacet", since: 0 };
static SYSXMLPLACEMENT: Base = Base { id: 93, name: "sysxmlplacement", since: 0 };
static SYSBINSUBOBJS: Base = Base { id: 97, name: "sysbinsubobjs", since: 0 };
static SYSSOFTOBJREFS: Base = Base { id: 98, name: "syssoftobjrefs", since: 655 };

pub(super) static OBJECTS: Keys = Keys { base: &SYSSCHOBJS, only: &[], view: "objects", key: &[("id", "object_id")] };
static FOREIGN_KEYS: Keys =
    Keys { base: &SYSSCHOBJS, only: &[Type(&["F"])], view: "foreign_keys", key: &[("id", "object_id")] };
static INTERNAL_TABLES: Keys =
    Keys { base: &SYSSCHOBJS, only: &[Type(&["IT"])], view: "internal_tables", key: &[("id", "object_id")] };
static QUEUES: Keys =
    Keys { base: &SYSSCHOBJS, only: &[Type(&["SQ"])], view: "service_queues", key: &[("id", "object_id")] };
static COLUMNS: Keys = Keys {
    base: &SYSCOLPARS,
    only: &[Is("number", 0)],
    view: "columns",
    key: &[("id", "object_id"), ("colid", "column_id")],
};
static PARAMETERS: Keys = Keys {
    base: &SYSCOLPARS,
    only: &[Not("number", 0)],
    view: "parameters",
    key: &[("id", "object_id"), ("colid", "parameter_id")],
};
pub(super) static INDEXES: Keys =
    Keys { base: &SYSIDXSTATS, only: &[], view: "indexes", key: &[("id", "object_id"), ("indid", "index_id")] };
static INDEX_COLUMNS: Keys = Keys {
    base: &SYSISCOLS,
    only: &[],
    view: "index_columns",
    key: &[("idmajor", "object_id"), ("idminor", "index_id")],
};
static TYPES: Keys = Keys { base: &SYSSCALARTYPES, only: &[], view: "types", key: &[("id", "user_type_id")] };
static SCHEMAS: Keys =
    Keys { base: &SYSCLSOBJS, only: &[Is("class", 50)], view: "schemas", key: &[("id", "schema_id")] };
static DATA_SPACES: Keys =
    Keys { base: &SYSCLSOBJS, only: &[Is("class", 31)], view: "data_spaces", key: &[("id", "data_space_id")] };
static ASSEMBLIES: Keys =
    Keys { base: &SYSCLSOBJS, only: &[Is("class", 10)], view: "assemblies", key: &[("id", "assembly_id")] };
static SYMMETRIC_KEYS: Keys =
    Keys { base: &SYSCLSOBJS, only: &[Is("class", 56)], view: "symmetric_keys", key: &[("id", "symmetric_key_id")] };
static FULLTEXT_CATALOGS: Keys = Keys {
    base: &SYSCLSOBJS,
    only: &[Is("class", 32)],
    view: "fulltext_catalogs",
    key: &[("id", "fulltext_catalog_id")],
};
static CERTIFICATES: Keys = Keys { base: &SYSCERTS, only: &[], view: "certificates", key: &[("id", "certificate_id")] };
static LANGUAGES: Keys = Keys {
    base: &SYSCLSOBJS,
    only: &[Is("class", 106)],
    view: "external_languages",
    key: &[("id", "external_language_id")],
};
static FILE_FORMATS: Keys =
    Keys { base: &SYSCLSOBJS, only: &[Is("class", 107)], view: "sysclsobjs", key: &[("id", "id")] };
static EXTERNAL_MODELS: Keys =
    Keys { base: &SYSCLSOBJS, only: &[Is("class", 109)], view: "external_models", key: &[("id", "external_model_id")] };
static PRINCIPALS: Keys =
    Keys { base: &SYSOWNERS, only: &[], view: "database_principals", key: &[("id", "principal_id")] };
static XML_COLLECTIONS: Keys = Keys {
    base: &SYSNSOBJS,
    only: &[Is("class", 27)],
    view: "xml_schema_collections",
    key: &[("id", "xml_collection_id")],
};
static XML_COMPONENTS: Keys =
    Keys { base: &SYSXMLCOMPONENT, only: &[], view: "xml_schema_components", key: &[("id", "xml_component_id")] };
static NAMES: Keys = Keys { base: &SYSQNAMES, only: &[], view: "sysqnames", key: &[("nid", "nid")] };
static ROUTES: Keys = Keys { base: &SYSRTS, only: &[], view: "routes", key: &[("id", "route_id")] };
static MESSAGE_TYPES: Keys = Keys {
    base: &SYSBINOBJS,
    only: &[Is("class", 21)],
    view: "service_message_types",
    key: &[("id", "message_type_id")],
};
static CONTRACTS: Keys = Keys {
    base: &SYSBINOBJS,
    only: &[Is("class", 22)],
    view: "service_contracts",
    key: &[("id", "service_contract_id")],
};
static SERVICES: Keys =
    Keys { base: &SYSBINOBJS, only: &[Is("class", 23)], view: "services", key: &[("id", "service_id")] };
static KEY_COLUMNS: Keys = Keys {
    base: &SYSSINGLEOBJREFS,
    only: &[Is("class", 28)],
    view: "foreign_key_columns",
    key: &[("depid", "constraint_object_id")],
};
static SCHEMA_OWNERS: Keys =
    Keys { base: &SYSSINGLEOBJREFS, only: &[Is("class", 50)], view: "schemas", key: &[("depid", "schema_id")] };
static ROLE_OWNERS: Keys = Keys {
    base: &SYSSINGLEOBJREFS,
    only: &[Is("class", 51)],
    view: "database_principals",
    key: &[("depid", "principal_id")],
};
static SERVICE_QUEUES: Keys =
    Keys { base: &SYSSINGLEOBJREFS, only: &[Is("class", 21)], view: "services", key: &[("depid", "service_id")] };
static DEFINITIONS: Keys =
    Keys { base: &SYSOBJVALUES, only: &[Is("valclass", 1)], view: "sql_modules", key: &[("objid", "object_id")] };
static COMPUTED: Keys = Keys {
    base: &SYSOBJVALUES,
    only: &[Is("valclass", 2)],
    view: "computed_columns",
    key: &[("objid", "object_id"), ("subobjid", "column_id")],
};
static FILTERS: Keys = Keys {
    base: &SYSOBJVALUES,
    only: &[Is("valclass", 66)],
    view: "indexes",
    key: &[("objid", "object_id"), ("subobjid", "index_id")],
};

/// One line per reference: view, base table, conditions on its rows and the columns that identify a row; then the
/// referring columns, the target, and how a missing target is reported. Each column is given by its name in the base
/// table and its name in the view.
macro_rules! references {
    ($($view:ident $base:ident [$($only:expr),*] {$($column:tt $name:tt),*}, {$($from:tt $as:tt),*} -> $to:ident, $says:expr;)*) => {
        /// All references.
        pub(super) static REFERENCES: &[Reference] = &[$(
            Reference {
                rows: Rows {
                    base: &$base,
                    only: &[$($only),*],
                    view: stringify!($view),
                    identity: &[$((stringify!($column), stringify!($name))),*],
                },
                refers: &[$((stringify!($from), stringify!($as))),*],
                to: &$to,
                says: $says,
            },
        )*];
    };
}

references! {
    // Tested on 176,950 objects. Only objects of nsclass 0 belong to a schema.
    objects SYSSCHOBJS [Is("nsclass", 0)] {id object_id}, {nsid schema_id} -> SCHEMAS, Dangling;
    // Tested on 2,339 objects that have a parent: constraints, triggers and internal tables.
    objects SYSSCHOBJS [Is("pclass", 1), Not("pid", 0)] {id object_id}, {pid parent_object_id} -> OBJECTS, Dangling;
    // In every real database, each table, table type and view has columns. The columns of the server's own views are in
    // the resource database.
    objects SYSSCHOBJS [Above("id", 0), Type(&["U", "IT", "TT", "V"])] {id object_id}, {id object_id} -> COLUMNS, Alone;
    // Tested on the objects and types to which 98,203 columns and 1,831 parameters refer.
    columns SYSCOLPARS [Is("number", 0)] {id object_id, colid column_id}, {id object_id} -> OBJECTS, Dangling;
    parameters SYSCOLPARS [Not("number", 0)] {id object_id, colid parameter_id}, {id object_id} -> OBJECTS, Dangling;
    columns SYSCOLPARS [Is("number", 0)] {id object_id, colid column_id}, {utype user_type_id} -> TYPES, Dangling;
    // Only a parameter can have the type cursor (type ID 0), which has no row in the table of types.
    parameters SYSCOLPARS [Not("number", 0), Not("utype", 0)] {id object_id, colid parameter_id}, {utype user_type_id} -> TYPES, Dangling;
    // Tested on 330 columns with a default and on 2 columns with an XML collection. No column has a rule (CREATE RULE).
    // The meaning of chk is inferred from sys.columns.
    columns SYSCOLPARS [Is("number", 0), Not("dflt", 0)] {id object_id, colid column_id}, {dflt default_object_id} -> OBJECTS, Dangling;
    columns SYSCOLPARS [Is("number", 0), Not("chk", 0)] {id object_id, colid column_id}, {chk rule_object_id} -> OBJECTS, Unproven;
    columns SYSCOLPARS [Not("xmlns", 0)] {id object_id, colid column_id}, {xmlns xml_collection_id} -> XML_COLLECTIONS, Dangling;
    // Each of the 6 computed columns has a definition. Column sets and pseudo-columns of graphs may have no definition.
    // The status of such columns has bits from 0x1000 on, so the rule does not apply to them.
    columns SYSCOLPARS [Is("number", 0), Bit("status", 16), Below("status", 0x1000)] {id object_id, colid column_id}, {id object_id, colid column_id} -> COMPUTED, Lacks("definition");
    // Tested on 4,517 types. None has a default or a rule, so the meaning of dflt and chk is inferred from sys.types.
    types SYSSCALARTYPES [] {id user_type_id}, {schid schema_id} -> SCHEMAS, Dangling;
    types SYSSCALARTYPES [Not("dflt", 0)] {id user_type_id}, {dflt default_object_id} -> OBJECTS, Unproven;
    types SYSSCALARTYPES [Not("chk", 0)] {id user_type_id}, {chk rule_object_id} -> OBJECTS, Unproven;
    // Tested on 27,435 heaps, indexes and statistics.
    indexes SYSIDXSTATS [] {id object_id, indid index_id}, {id object_id} -> OBJECTS, Dangling;
    // Tested on the data spaces of 6,290 indexes, and on the data spaces for LOB values of 641 indexes, all in versions
    // before SQL Server 2012.
    indexes SYSIDXSTATS [Not("dataspace", 0)] {id object_id, indid index_id}, {dataspace data_space_id} -> DATA_SPACES, Dangling;
    indexes SYSIDXSTATS [Not("lobds", 0)] {id object_id, indid index_id}, {lobds lob_data_space_id} -> DATA_SPACES, Dangling;
    // Tested on 27,136 indexes and statistics, none of them a columnstore or hash index. Status bit 2 means that the
    // index or the statistics have columns.
    indexes SYSIDXSTATS [Above("indid", 0), Bit("status", 2), Below("type", 5)] {id object_id, indid index_id}, {id object_id, indid index_id} -> INDEX_COLUMNS, Alone;
    // Each of the 10 filtered indexes has a filter definition.
    indexes SYSIDXSTATS [Bit("status", 0x20000)] {id object_id, indid index_id}, {id object_id, indid index_id} -> FILTERS, Lacks("filter_definition");
    // Tested on 50,840 columns of indexes and statistics.
    index_columns SYSISCOLS [] {idmajor object_id, idminor index_id, subid index_column_id}, {idmajor object_id, idminor index_id} -> INDEXES, Dangling;
    index_columns SYSISCOLS [Not("intprop", 0)] {idmajor object_id, idminor index_id, subid index_column_id}, {idmajor object_id, intprop column_id} -> COLUMNS, Dangling;
    // Tested on 17,323 rowsets and 20,032 allocation units.
    sysrowsets SYSROWSETS [Is("ownertype", 1)] {rowsetid rowset_id}, {idmajor object_id, idminor index_id} -> INDEXES, Dangling;
    allocation_units SYSALLOCUNITS [Not("fgid", 0)] {auid allocation_unit_id}, {fgid data_space_id} -> DATA_SPACES, Dangling;
    // Tested on 114 files. The row of a dropped file stays in the table, and may stay even after the filegroup of the
    // file was dropped.
    database_files SYSPRUFILES [Is("filestate", 0), Not("grpid", 0)] {fileid file_id}, {grpid data_space_id} -> DATA_SPACES, Dangling;
    // Tested on 1,349 texts of modules, defaults and CHECK constraints, and on 1,349 objects that must have a text.
    sql_modules SYSOBJVALUES [Is("valclass", 1), Above("objid", 0)] {objid object_id}, {objid object_id} -> OBJECTS, OfNothing;
    objects SYSSCHOBJS [Above("id", 0), Type(&["P", "V", "TR", "FN", "IF", "TF", "D", "C"])] {id object_id}, {id object_id} -> DEFINITIONS, Lacks("definition");
    // Tested on 6 computed columns, 27,136 statistics, 10 filters and 21 trigger events, and for ledger tables on 24
    // values of class 119 and 12 values of class 123.
    computed_columns SYSOBJVALUES [Is("valclass", 2)] {objid object_id, subobjid column_id}, {objid object_id, subobjid column_id} -> COLUMNS, OfNothing;
    stats SYSOBJVALUES [Is("valclass", 60)] {objid object_id, subobjid index_id}, {objid object_id, subobjid index_id} -> INDEXES, OfNothing;
    indexes SYSOBJVALUES [Is("valclass", 66)] {objid object_id, subobjid index_id}, {objid object_id, subobjid index_id} -> INDEXES, OfNothing;
    trigger_events SYSOBJVALUES [Is("valclass", 70)] {objid object_id, subobjid type}, {objid object_id} -> OBJECTS, OfNothing;
    columns SYSOBJVALUES [Is("valclass", 119)] {objid object_id, subobjid column_id}, {objid object_id, subobjid column_id} -> COLUMNS, Unproven;
    sysobjvalues SYSOBJVALUES [Is("valclass", 123)] {objid object_id}, {objid object_id} -> OBJECTS, Unproven;
    // Tested on 3 sequences and 8 values of spatial indexes, all of them in backups. Synonyms and periods of temporal
    // tables were found in very few databases.
    synonyms SYSOBJVALUES [Is("valclass", 4)] {objid object_id}, {objid object_id} -> OBJECTS, OfNothing;
    sequences SYSOBJVALUES [Is("valclass", 63)] {objid object_id}, {objid object_id} -> OBJECTS, OfNothing;
    spatial_index_tessellations SYSOBJVALUES [Above("valclass", 91), Below("valclass", 95)] {valnum valnum}, {objid object_id, subobjid index_id} -> INDEXES, OfNothing;
    periods SYSOBJVALUES [Is("valclass", 113)] {subobjid start_column_id, valnum end_column_id}, {objid object_id} -> OBJECTS, OfNothing;
    // Tested on 228 assembly files, 72 files of external languages and 60 settings of external file formats.
    assembly_files SYSOBJVALUES [Is("valclass", 10)] {objid assembly_id, subobjid file_id}, {objid assembly_id} -> ASSEMBLIES, OfNothing;
    external_language_files SYSOBJVALUES [Is("valclass", 145)] {objid external_language_id}, {objid external_language_id} -> LANGUAGES, OfNothing;
    sysobjvalues SYSOBJVALUES [Is("valclass", 153)] {objid id}, {objid id} -> FILE_FORMATS, OfNothing;
    // Tested on 4 rows, all in version 2022. Class 7 is the data space of an index, class 8 the data space of its LOB
    // values.
    indexes SYSSINGLEOBJREFS [Is("class", 7)] {indepid data_space_id}, {depid object_id, depsubid index_id} -> INDEXES, Unproven;
    indexes SYSSINGLEOBJREFS [Is("class", 7)] {depid object_id, depsubid index_id}, {indepid data_space_id} -> DATA_SPACES, Unproven;
    // Tested on 1,002 rows. Each names the data space for the LOB values of a heap or clustered index.
    indexes SYSSINGLEOBJREFS [Is("class", 8), Below("depsubid", 2)] {indepid lob_data_space_id}, {depid object_id, depsubid index_id} -> INDEXES, OfNothing;
    indexes SYSSINGLEOBJREFS [Is("class", 8), Below("depsubid", 2)] {depid object_id, depsubid index_id}, {indepid lob_data_space_id} -> DATA_SPACES, Dangling;
    // Tested on the display names of 114 assemblies.
    assemblies SYSSINGLEOBJREFS [Is("class", 17)] {indepid nid}, {depid assembly_id} -> ASSEMBLIES, OfNothing;
    assemblies SYSSINGLEOBJREFS [Is("class", 17)] {depid assembly_id}, {indepid nid} -> NAMES, Dangling;
    assemblies SYSSINGLEOBJREFS [Is("class", 26)] {indepid nid}, {depid assembly_id} -> ASSEMBLIES, OfNothing;
    assemblies SYSSINGLEOBJREFS [Is("class", 26)] {depid assembly_id}, {indepid nid} -> NAMES, Dangling;
    // Tested on 3 functions in an assembly, each with its class and method (sys.assembly_modules), and on 3 assemblies
    // with the GUID of their module.
    assembly_modules SYSOBJVALUES [Is("valclass", 11)] {objid object_id, valnum valnum}, {objid object_id} -> OBJECTS, Unproven;
    assembly_modules SYSSINGLEOBJREFS [Is("class", 11)] {indepid assembly_id}, {depid object_id} -> OBJECTS, Unproven;
    assembly_modules SYSSINGLEOBJREFS [Is("class", 11)] {depid object_id}, {indepid assembly_id} -> ASSEMBLIES, Unproven;
    assemblies SYSGUIDREFS [Is("class", 1)] {subid subid}, {id assembly_id} -> ASSEMBLIES, Unproven;
    // Tested on 161 modules WITH EXECUTE AS a principal. The principal -2 means EXECUTE AS OWNER (sys.sql_modules).
    sql_modules SYSSINGLEOBJREFS [Is("class", 22)] {indepid execute_as_principal_id}, {depid object_id} -> OBJECTS, OfNothing;
    sql_modules SYSSINGLEOBJREFS [Is("class", 22), Not("indepid", -2)] {depid object_id}, {indepid execute_as_principal_id} -> PRINCIPALS, Dangling;
    // Tested on 561 foreign keys. The rows name the constraint, the index that the foreign key refers to, and both
    // columns of each pair.
    foreign_keys SYSSINGLEOBJREFS [Is("class", 27)] {indepid referenced_object_id}, {depid object_id} -> FOREIGN_KEYS, OfNothing;
    foreign_keys SYSSINGLEOBJREFS [Is("class", 27)] {depid object_id}, {indepid referenced_object_id, indepsubid key_index_id} -> INDEXES, Dangling;
    foreign_key_columns SYSSINGLEOBJREFS [Is("class", 28)] {indepid parent_object_id, indepsubid parent_column_id}, {depid object_id} -> FOREIGN_KEYS, OfNothing;
    foreign_key_columns SYSSINGLEOBJREFS [Is("class", 28)] {depid constraint_object_id, depsubid constraint_column_id}, {indepid parent_object_id, indepsubid parent_column_id} -> COLUMNS, Dangling;
    foreign_key_columns SYSSINGLEOBJREFS [Is("class", 29)] {indepid referenced_object_id, indepsubid referenced_column_id}, {depid object_id} -> FOREIGN_KEYS, OfNothing;
    foreign_key_columns SYSSINGLEOBJREFS [Is("class", 29)] {depid constraint_object_id, depsubid constraint_column_id}, {indepid referenced_object_id, indepsubid referenced_column_id} -> COLUMNS, Dangling;
    // Each of the 561 foreign keys has columns.
    foreign_keys SYSSCHOBJS [Type(&["F"])] {id object_id}, {id object_id} -> KEY_COLUMNS, Alone;
    // Tested on 13 table types in a backup, and on the history tables of temporal tables in two databases.
    table_types SYSSINGLEOBJREFS [Is("class", 36)] {indepid type_table_object_id}, {depid user_type_id} -> TYPES, OfNothing;
    table_types SYSSINGLEOBJREFS [Is("class", 36)] {depid user_type_id}, {indepid type_table_object_id} -> OBJECTS, Dangling;
    tables SYSSINGLEOBJREFS [Is("class", 112)] {depid history_table_id}, {indepid object_id} -> OBJECTS, Unproven;
    tables SYSSINGLEOBJREFS [Is("class", 112)] {indepid object_id}, {depid history_table_id} -> OBJECTS, Unproven;
    // Tested on 342 CLR types.
    assembly_types SYSSINGLEOBJREFS [Is("class", 38)] {indepid assembly_id}, {depid user_type_id} -> TYPES, OfNothing;
    assembly_types SYSSINGLEOBJREFS [Is("class", 38)] {depid user_type_id}, {indepid assembly_id} -> ASSEMBLIES, Dangling;
    // Tested on 1,257 internal tables. 413 of these tables have a parent table; for 2 of them, the row also names an
    // index of the parent.
    internal_tables SYSSINGLEOBJREFS [Is("class", 40)] {depsubid internal_type}, {depid object_id} -> INTERNAL_TABLES, OfNothing;
    internal_tables SYSSINGLEOBJREFS [Is("class", 40), Not("indepid", 0)] {depid object_id}, {indepid parent_id} -> OBJECTS, Dangling;
    internal_tables SYSSINGLEOBJREFS [Is("class", 40), Not("indepid", 0), Not("indepsubid", 0)] {depid object_id}, {indepid parent_id, indepsubid parent_minor_id} -> INDEXES, Unproven;
    // Tested on the owners of 137 routes, 1,787 schemas, 1,372 roles, 114 assemblies, 1,918 message types, 822
    // contracts, 411 services and 24 languages.
    routes SYSSINGLEOBJREFS [Is("class", 49)] {indepid principal_id}, {depid route_id} -> ROUTES, OfNothing;
    routes SYSSINGLEOBJREFS [Is("class", 49)] {depid route_id}, {indepid principal_id} -> PRINCIPALS, Dangling;
    schemas SYSSINGLEOBJREFS [Is("class", 50)] {indepid principal_id}, {depid schema_id} -> SCHEMAS, OfNothing;
    schemas SYSSINGLEOBJREFS [Is("class", 50)] {depid schema_id}, {indepid principal_id} -> PRINCIPALS, Dangling;
    database_principals SYSSINGLEOBJREFS [Is("class", 51)] {indepid owning_principal_id}, {depid principal_id} -> PRINCIPALS, OfNothing;
    database_principals SYSSINGLEOBJREFS [Is("class", 51)] {depid principal_id}, {indepid owning_principal_id} -> PRINCIPALS, Dangling;
    assemblies SYSSINGLEOBJREFS [Is("class", 52)] {indepid principal_id}, {depid assembly_id} -> ASSEMBLIES, OfNothing;
    assemblies SYSSINGLEOBJREFS [Is("class", 52)] {depid assembly_id}, {indepid principal_id} -> PRINCIPALS, Dangling;
    service_message_types SYSSINGLEOBJREFS [Is("class", 53)] {indepid principal_id}, {depid message_type_id} -> MESSAGE_TYPES, OfNothing;
    service_message_types SYSSINGLEOBJREFS [Is("class", 53)] {depid message_type_id}, {indepid principal_id} -> PRINCIPALS, Dangling;
    service_contracts SYSSINGLEOBJREFS [Is("class", 54)] {indepid principal_id}, {depid service_contract_id} -> CONTRACTS, OfNothing;
    service_contracts SYSSINGLEOBJREFS [Is("class", 54)] {depid service_contract_id}, {indepid principal_id} -> PRINCIPALS, Dangling;
    services SYSSINGLEOBJREFS [Is("class", 55)] {indepid principal_id}, {depid service_id} -> SERVICES, OfNothing;
    services SYSSINGLEOBJREFS [Is("class", 55)] {depid service_id}, {indepid principal_id} -> PRINCIPALS, Dangling;
    external_languages SYSSINGLEOBJREFS [Is("class", 125)] {indepid principal_id}, {depid external_language_id} -> LANGUAGES, OfNothing;
    external_languages SYSSINGLEOBJREFS [Is("class", 125)] {depid external_language_id}, {indepid principal_id} -> PRINCIPALS, Dangling;
    // Tested only on backups: on the owners of a full-text catalog, of 9 symmetric keys and of 3 certificates, and on
    // the encryptions of the keys.
    fulltext_catalogs SYSSINGLEOBJREFS [Is("class", 46)] {indepid principal_id}, {depid fulltext_catalog_id} -> FULLTEXT_CATALOGS, OfNothing;
    fulltext_catalogs SYSSINGLEOBJREFS [Is("class", 46)] {depid fulltext_catalog_id}, {indepid principal_id} -> PRINCIPALS, Dangling;
    symmetric_keys SYSSINGLEOBJREFS [Is("class", 47)] {indepid principal_id}, {depid symmetric_key_id} -> SYMMETRIC_KEYS, OfNothing;
    symmetric_keys SYSSINGLEOBJREFS [Is("class", 47)] {depid symmetric_key_id}, {indepid principal_id} -> PRINCIPALS, Dangling;
    certificates SYSSINGLEOBJREFS [Is("class", 62)] {indepid principal_id}, {depid certificate_id} -> CERTIFICATES, OfNothing;
    certificates SYSSINGLEOBJREFS [Is("class", 62)] {depid certificate_id}, {indepid principal_id} -> PRINCIPALS, Dangling;
    key_encryptions SYSOBJKEYCRYPTS [Is("class", 24)] {id key_id}, {id key_id} -> SYMMETRIC_KEYS, Unproven;
    symmetric_keys SYSGUIDREFS [Is("class", 2)] {subid subid}, {id symmetric_key_id} -> SYMMETRIC_KEYS, Unproven;
    // Tested on 5 filegroups with a GUID. The table sysphfg stores the GUID too.
    filegroups SYSGUIDREFS [Is("class", 3)] {subid subid}, {id data_space_id} -> DATA_SPACES, Unproven;
    // Tested on 7 values of an external model (2025), and on the owner of the model.
    external_models SYSOBJVALUES [Is("valclass", 182)] {valnum valnum}, {objid external_model_id} -> EXTERNAL_MODELS, Unproven;
    external_models SYSSINGLEOBJREFS [Is("class", 137)] {indepid principal_id}, {depid external_model_id} -> EXTERNAL_MODELS, Unproven;
    external_models SYSSINGLEOBJREFS [Is("class", 137)] {depid external_model_id}, {indepid principal_id} -> PRINCIPALS, Unproven;
    // Each schema and each role has an owner: 1,787 of 1,787 schemas and 1,372 of 1,372 roles.
    schemas SYSCLSOBJS [Is("class", 50)] {id schema_id}, {id schema_id} -> SCHEMA_OWNERS, Lacks("principal_id");
    database_principals SYSOWNERS [Type(&["R"])] {id principal_id}, {id principal_id} -> ROLE_OWNERS, Lacks("owning_principal_id");
    // Tested on 6 ledger tables.
    tables SYSSINGLEOBJREFS [Is("class", 84)] {depid history_table_id}, {indepid object_id} -> OBJECTS, Unproven;
    tables SYSSINGLEOBJREFS [Is("class", 84)] {indepid object_id}, {depid history_table_id} -> OBJECTS, Unproven;
    // Tested on 430 primary key and unique constraints. `index_of_key` checks the index of each constraint.
    key_constraints SYSSINGLEOBJREFS [Is("class", 93)] {indepid unique_index_id}, {depid object_id} -> OBJECTS, OfNothing;
    // Tested on XML schemas: 415 namespaces, 342 base types, 10,863 types and 82 names of XML indexes.
    xml_schema_namespaces SYSSINGLEOBJREFS [Is("class", 80)] {indepid nid}, {depid xml_collection_id} -> XML_COLLECTIONS, OfNothing;
    xml_schema_namespaces SYSSINGLEOBJREFS [Is("class", 80)] {depid xml_collection_id}, {indepid nid} -> NAMES, Dangling;
    xml_schema_components SYSSINGLEOBJREFS [Is("class", 81)] {indepid base_xml_component_id}, {depid xml_component_id} -> XML_COMPONENTS, OfNothing;
    xml_schema_components SYSSINGLEOBJREFS [Is("class", 81)] {depid xml_component_id}, {indepid base_xml_component_id} -> XML_COMPONENTS, Dangling;
    xml_schema_components SYSSINGLEOBJREFS [Is("class", 82)] {indepid type_xml_component_id}, {depid xml_component_id} -> XML_COMPONENTS, OfNothing;
    xml_schema_components SYSSINGLEOBJREFS [Is("class", 82)] {depid xml_component_id}, {indepid type_xml_component_id} -> XML_COMPONENTS, Dangling;
    internal_tables SYSSINGLEOBJREFS [Is("class", 86)] {indepid nid}, {depid object_id} -> INTERNAL_TABLES, OfNothing;
    internal_tables SYSSINGLEOBJREFS [Is("class", 86)] {depid object_id}, {indepid nid} -> NAMES, Dangling;
    // Tested on 5,376 dependencies by name and 181 schema-bound dependencies. The system objects that modules use are
    // in another database. The predicates of security policies (2016) are schema-bound too; it is undocumented how they
    // refer to a column.
    sql_dependencies SYSMULTIOBJREFS [Is("class", 0), Above("depid", 0)] {class class, depid object_id, depsubid column_id, indepid referenced_major_id, indepsubid referenced_minor_id}, {depid object_id} -> OBJECTS, Dangling;
    sql_dependencies SYSMULTIOBJREFS [Is("class", 0), Above("indepid", 0)] {class class, depid object_id, depsubid column_id, indepid referenced_major_id, indepsubid referenced_minor_id}, {indepid referenced_major_id} -> OBJECTS, Dangling;
    sql_dependencies SYSMULTIOBJREFS [Is("class", 0), Above("indepid", 0), Not("indepsubid", 0)] {class class, depid object_id, depsubid column_id, indepid referenced_major_id, indepsubid referenced_minor_id}, {indepid referenced_major_id, indepsubid referenced_minor_id} -> COLUMNS, Unproven;
    sql_dependencies SYSMULTIOBJREFS [Is("class", 1), Above("depid", 0)] {class class, depid object_id, depsubid column_id, indepid referenced_major_id, indepsubid referenced_minor_id}, {depid object_id} -> OBJECTS, Dangling;
    sql_dependencies SYSMULTIOBJREFS [Is("class", 1), Above("depid", 0), Not("depsubid", 0)] {class class, depid object_id, depsubid column_id, indepid referenced_major_id, indepsubid referenced_minor_id}, {depid object_id, depsubid column_id} -> COLUMNS, Unproven;
    sql_dependencies SYSMULTIOBJREFS [Is("class", 1), Above("indepid", 0)] {class class, depid object_id, depsubid column_id, indepid referenced_major_id, indepsubid referenced_minor_id}, {indepid referenced_major_id} -> OBJECTS, Dangling;
    sql_dependencies SYSMULTIOBJREFS [Is("class", 1), Above("indepid", 0), Not("indepsubid", 0)] {class class, depid object_id, depsubid column_id, indepid referenced_major_id, indepsubid referenced_minor_id}, {indepid referenced_major_id, indepsubid referenced_minor_id} -> COLUMNS, Dangling;
    // Tested on 10 columns to which filters of indexes refer.
    sysmultiobjrefs SYSMULTIOBJREFS [Is("class", 5)] {class class, depid object_id, depsubid column_id, indepid referenced_major_id, indepsubid referenced_minor_id}, {depid object_id, depsubid index_id} -> INDEXES, Dangling;
    sysmultiobjrefs SYSMULTIOBJREFS [Is("class", 5)] {class class, depid object_id, depsubid column_id, indepid referenced_major_id, indepsubid referenced_minor_id}, {indepid referenced_major_id, indepsubid referenced_minor_id} -> COLUMNS, Dangling;
    // Tested on 274 contracts of services and 1,507 message types of contracts.
    service_contract_usages SYSMULTIOBJREFS [Is("class", 19)] {indepid service_contract_id}, {depid service_id} -> SERVICES, OfNothing;
    service_contract_usages SYSMULTIOBJREFS [Is("class", 19)] {depid service_id}, {indepid service_contract_id} -> CONTRACTS, Broker(&registry::BROKER_CONTRACT_MISSING);
    service_contract_message_usages SYSMULTIOBJREFS [Is("class", 20)] {indepid message_type_id}, {depid service_contract_id} -> CONTRACTS, OfNothing;
    service_contract_message_usages SYSMULTIOBJREFS [Is("class", 20)] {depid service_contract_id}, {indepid message_type_id} -> MESSAGE_TYPES, Broker(&registry::BROKER_MESSAGE_TYPE_MISSING);
    // Tested on 411 queues of services.
    services SYSSINGLEOBJREFS [Is("class", 21)] {indepid service_queue_id}, {depid service_id} -> SERVICES, OfNothing;
    services SYSSINGLEOBJREFS [Is("class", 21)] {depid service_id}, {indepid service_queue_id} -> QUEUES, Broker(&registry::BROKER_QUEUE_MISSING);
    services SYSBINOBJS [Is("class", 23)] {id service_id}, {id service_id} -> SERVICE_QUEUES, Lacks("service_queue_id");
    // Tested on 144 memberships in roles.
    database_role_members SYSMULTIOBJREFS [Is("class", 25)] {indepid role_principal_id, depid member_principal_id}, {depid member_principal_id} -> PRINCIPALS, Dangling;
    database_role_members SYSMULTIOBJREFS [Is("class", 25)] {indepid role_principal_id, depid member_principal_id}, {indepid role_principal_id} -> PRINCIPALS, Dangling;
    // Tested on names in XML schemas: 4 of class 83 and 12,631 of class 84.
    sysmultiobjrefs SYSMULTIOBJREFS [Is("class", 83)] {class class, depid depid, indepid indepid}, {depid xml_component_id} -> XML_COMPONENTS, Dangling;
    sysmultiobjrefs SYSMULTIOBJREFS [Is("class", 83)] {class class, depid depid, indepid indepid}, {indepid nid} -> NAMES, Dangling;
    sysmultiobjrefs SYSMULTIOBJREFS [Is("class", 84)] {class class, depid depid, indepid indepid}, {depid xml_collection_id} -> XML_COLLECTIONS, Dangling;
    sysmultiobjrefs SYSMULTIOBJREFS [Is("class", 84)] {class class, depid depid, indepid indepid}, {indepid nid} -> NAMES, Dangling;
    // Tested on 20,499 permissions, not counting the permissions on the server in master. 833 of the permissions are on
    // user objects, 6 are on types, and one, which was found in a backup, is on a principal.
    database_permissions SYSPRIVS [Below("class", 100)] {class class, id major_id, subid minor_id, grantee grantee_principal_id, grantor grantor_principal_id}, {grantee grantee_principal_id} -> PRINCIPALS, Dangling;
    database_permissions SYSPRIVS [Below("class", 100)] {class class, id major_id, subid minor_id, grantee grantee_principal_id, grantor grantor_principal_id}, {grantor grantor_principal_id} -> PRINCIPALS, Dangling;
    database_permissions SYSPRIVS [Is("class", 1), Above("id", 0)] {class class, id major_id, subid minor_id, grantee grantee_principal_id, grantor grantor_principal_id}, {id major_id} -> OBJECTS, Dangling;
    database_permissions SYSPRIVS [Is("class", 4)] {class class, id major_id, subid minor_id, grantee grantee_principal_id, grantor grantor_principal_id}, {id major_id} -> PRINCIPALS, Dangling;
    database_permissions SYSPRIVS [Is("class", 6)] {class class, id major_id, subid minor_id, grantee grantee_principal_id, grantor grantor_principal_id}, {id major_id} -> TYPES, Dangling;
    // Tested on extended properties: 742 of objects, 247 of columns, 6 of parameters, 2 of schemas, 32 of indexes, 2 of
    // XML collections and 2 of filegroups.
    extended_properties SYSXPROPS [Is("class", 1)] {class class, id major_id, subid minor_id}, {id major_id} -> OBJECTS, Dangling;
    extended_properties SYSXPROPS [Is("class", 1), Not("subid", 0)] {class class, id major_id, subid minor_id}, {id major_id, subid minor_id} -> COLUMNS, Unproven;
    extended_properties SYSXPROPS [Is("class", 2)] {class class, id major_id, subid minor_id}, {id major_id, subid minor_id} -> PARAMETERS, Unproven;
    extended_properties SYSXPROPS [Is("class", 3)] {class class, id major_id, subid minor_id}, {id major_id} -> SCHEMAS, Unproven;
    extended_properties SYSXPROPS [Is("class", 7)] {class class, id major_id, subid minor_id}, {id major_id, subid minor_id} -> INDEXES, Unproven;
    extended_properties SYSXPROPS [Is("class", 10)] {class class, id major_id, subid minor_id}, {id major_id} -> XML_COLLECTIONS, Unproven;
    extended_properties SYSXPROPS [Is("class", 20)] {class class, id major_id, subid minor_id}, {id major_id} -> DATA_SPACES, Unproven;
    // Tested on 1,391 dependencies by name. Each row stores the ID of the referring object, but only the name of the
    // object that it refers to.
    sql_expression_dependencies SYSSOFTOBJREFS [Is("depclass", 1), Above("depid", 0)] {depid referencing_id}, {depid referencing_id} -> OBJECTS, Dangling;
    // Tested on 139 XML schema collections.
    xml_schema_collections SYSNSOBJS [Is("class", 27)] {id xml_collection_id}, {nsid schema_id} -> SCHEMAS, Dangling;
    // Tested on XML schemas: 13,592 components, of which 13,290 have a name, 14,999 facets and 2,642 placements.
    xml_schema_components SYSXMLCOMPONENT [] {id xml_component_id}, {xsdid xml_collection_id} -> XML_COLLECTIONS, Dangling;
    xml_schema_components SYSXMLCOMPONENT [Not("nameid", 0)] {id xml_component_id}, {nameid nid} -> NAMES, Dangling;
    xml_schema_facets SYSXMLFACET [] {ord facet_id}, {compid xml_component_id} -> XML_COMPONENTS, OfNothing;
    xml_schema_component_placements SYSXMLPLACEMENT [] {placingid xml_component_id, ordinal placement_id}, {placingid xml_component_id} -> XML_COMPONENTS, Dangling;
    xml_schema_component_placements SYSXMLPLACEMENT [] {placingid xml_component_id, ordinal placement_id}, {placedid placed_xml_component_id} -> XML_COMPONENTS, Dangling;
    // Tested on 342 CLR types in assemblies.
    assembly_types SYSBINSUBOBJS [Is("class", 11)] {subid user_type_id}, {idmajor assembly_id} -> ASSEMBLIES, OfNothing;
    assembly_types SYSBINSUBOBJS [Is("class", 11)] {idmajor assembly_id}, {subid user_type_id} -> TYPES, Dangling;
}

/// The tables with rows of many classes. Rows of some classes refer to nothing, or to something outside this catalog:
/// database settings (sysobjvalues 7), permissions on the database (sysprivs 0) and properties of the database and of
/// files (sysxprops 0, 22). In the master databases of four releases, this is also true of server settings and of rows
/// about logins, endpoints and credentials.
pub(super) static CLASSES: &[Classes] = &[
    Classes {
        base: &SYSOBJVALUES,
        column: "valclass",
        known: &[1, 2, 4, 7, 10, 11, 60, 63, 66, 70, 92, 93, 94, 113, 119, 123, 145, 153, 182],
        of_server: &[25, 26, 50, 56, 57, 58, 59, 64, 90, 91, 101, 125],
    },
    Classes {
        base: &SYSSINGLEOBJREFS,
        column: "class",
        known: &[
            7, 8, 11, 17, 21, 22, 26, 27, 28, 29, 36, 38, 40, 46, 47, 49, 50, 51, 52, 53, 54, 55, 62, 80, 81, 82, 84,
            86, 93, 112, 125, 137,
        ],
        of_server: &[12, 13, 60, 64, 76, 120],
    },
    Classes { base: &SYSMULTIOBJREFS, column: "class", known: &[0, 1, 5, 19, 20, 25, 83, 84], of_server: &[26] },
    Classes { base: &SYSPRIVS, column: "class", known: &[0, 1, 4, 6], of_server: &[100, 105] },
    Classes { base: &SYSGUIDREFS, column: "class", known: &[1, 2, 3], of_server: &[] },
    Classes { base: &SYSOBJKEYCRYPTS, column: "class", known: &[24], of_server: &[1] },
    Classes { base: &SYSXPROPS, column: "class", known: &[0, 1, 2, 3, 7, 10, 20, 22], of_server: &[] },
];

/// Tables with undocumented references; empty in all files seen.
pub(super) static UNKNOWN: &[Base] = &[
    Base { id: 25, name: "sysftinds", since: 0 },
    Base { id: 51, name: "systypedsubobjs", since: 0 },
    Base { id: 59, name: "sysaudacts", since: 655 },
    Base { id: 65, name: "sysrowsetrefs", since: 0 },
    Base { id: 82, name: "syscompfragments", since: 655 },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_row_that_an_assembly_and_its_functions_leave_is_known() {
        for (table, class) in [("sysobjvalues", 11), ("syssingleobjrefs", 11), ("sysguidrefs", 1)] {
            let classes = CLASSES.iter().find(|classes| classes.base.name == table).unwrap();
            assert!(classes.has(class, false), "{table} {class}");
        }
    }

    #[test]
    fn only_master_has_rows_that_refer_to_the_server() {
        const ON_ENDPOINT: i64 = 105;
        let permissions = CLASSES.iter().find(|classes| classes.base.name == "sysprivs").unwrap();
        assert_eq!([true, false].map(|is_master| permissions.has(ON_ENDPOINT, is_master)), [true, false]);
        assert_eq!([true, false].map(|is_master| permissions.has(77, is_master)), [false; 2]);
        for Classes { base, known, of_server, .. } in CLASSES {
            assert!(known.iter().all(|class| !of_server.contains(class)), "{}", base.name);
        }
    }
}
