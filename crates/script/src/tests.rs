//! Compares scripts of real databases with their published install scripts.

use std::path::{Path, PathBuf};

use catalog::Database;

use super::*;

fn full(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/corpus").join(path)
}

/// The catalog of a database in `target/corpus`. If the file is missing, prints a line and returns `None`.
fn load(path: &str) -> Option<(Database, Definitions)> {
    let path = full(path);
    if !path.exists() {
        eprintln!("SKIPPED: {} is not at hand", path.display());
        return None;
    }
    let source = source::open(&[path], &[], false).unwrap();
    let database = catalog::load(&*source);
    let definitions = Definitions::load(&*source, &database);
    Some((database, definitions))
}

fn modules(database: &Database, definitions: &Definitions, path: &str) -> Vec<Module> {
    let source = source::open(&[full(path)], &[], false).unwrap();
    let mut modules = Vec::new();
    let mut keep = |module| -> Result<(), ()> {
        modules.push(module);
        Ok(())
    };
    Script::new(database, definitions).each_module(&*source, &mut keep).unwrap();
    modules
}

fn table(database: &Database, name: &str) -> i32 {
    let is_it = |object: &&catalog::Object| object.name == name && object.type_code == "U";
    database.objects.values().find(is_it).unwrap().id
}

#[test]
fn tables_of_northwind_are_those_of_its_install_script() {
    let Some((database, definitions)) = load("itsligo__sampledbs/northwnd.mdf") else { return };
    let script = Script::new(&database, &definitions);
    assert!(definitions.incomplete.is_empty());
    let products = table(&database, "Products");
    let text = script.create_table(products).unwrap().replace(" COLLATE Latin1_General_CI_AI", "");
    let expected = "CREATE TABLE [dbo].[Products] (
    [ProductID] int IDENTITY(1,1) NOT NULL,
    [ProductName] nvarchar(40) NOT NULL,
    [SupplierID] int NULL,
    [CategoryID] int NULL,
    [QuantityPerUnit] nvarchar(20) NULL,
    [UnitPrice] money NULL CONSTRAINT [DF_Products_UnitPrice] DEFAULT ((0)),
    [UnitsInStock] smallint NULL CONSTRAINT [DF_Products_UnitsInStock] DEFAULT ((0)),
    [UnitsOnOrder] smallint NULL CONSTRAINT [DF_Products_UnitsOnOrder] DEFAULT ((0)),
    [ReorderLevel] smallint NULL CONSTRAINT [DF_Products_ReorderLevel] DEFAULT ((0)),
    [Discontinued] bit NOT NULL CONSTRAINT [DF_Products_Discontinued] DEFAULT ((0))
) ON [PRIMARY];
";
    assert_eq!(text, expected);
    let keys = script.keys(products);
    let key = "ALTER TABLE [dbo].[Products] ADD CONSTRAINT [PK_Products] PRIMARY KEY CLUSTERED ([ProductID] ASC) ON [PRIMARY];\n";
    assert_eq!(keys, [key]);
    let indexes = script.indexes(products);
    let name = "CREATE NONCLUSTERED INDEX [ProductName] ON [dbo].[Products] ([ProductName] ASC) ON [PRIMARY];\n";
    assert_eq!(indexes.len(), 5);
    assert!(indexes.iter().any(|index| index == name), "{indexes:?}");
    let checks = script.checks(products).concat();
    let check = "[dbo].[Products] WITH NOCHECK ADD CONSTRAINT [CK_Products_UnitPrice] CHECK ([UnitPrice]>=(0));";
    assert!(checks.contains(check), "{checks}");
    let details = script.foreign_keys(table(&database, "Order Details")).concat();
    assert!(details.contains("FOREIGN KEY ([OrderID])\n    REFERENCES [dbo].[Orders] ([OrderID]);"), "{details}");
    let views = modules(&database, &definitions, "itsligo__sampledbs/northwnd.mdf");
    let view = views.iter().find(|module| module.name == "Ten Most Expensive Products").unwrap();
    assert_eq!(view.kind, "PROCEDURE");
    assert!(view.text.text().unwrap().contains("SET ROWCOUNT 10"));
}

#[test]
fn tables_of_adventure_works_have_alias_types_computed_columns_and_texts_off_the_row() {
    let path = "jdhj__edx/AdventureWorksLT2012_Data.zip.d/AdventureWorksLT2012_Data.mdf";
    let Some((database, definitions)) = load(path) else { return };
    let script = Script::new(&database, &definitions);
    let header = script.create_table(table(&database, "SalesOrderHeader")).unwrap();
    for part in [
        "[SalesOrderNumber] AS (isnull(N'SO'+CONVERT([nvarchar](23),[SalesOrderID],0),N'*** ERROR ***'))",
        "[OnlineOrderFlag] [dbo].[Flag] NOT NULL CONSTRAINT [DF_SalesOrderHeader_OnlineOrderFlag] DEFAULT ((1))",
        "[TotalDue] AS (isnull(([SubTotal]+[TaxAmt])+[Freight],(0)))",
        "[rowguid] uniqueidentifier NOT NULL ROWGUIDCOL CONSTRAINT [DF_SalesOrderHeader_rowguid] DEFAULT (newid())",
        "[CreditCardApprovalCode] varchar(15)",
    ] {
        assert!(header.contains(part), "{part} in\n{header}");
    }
    let product = table(&database, "Product");
    assert!(script.create_table(product).unwrap().contains("[Name] [dbo].[Name] NOT NULL"));
    assert_eq!(
        script.needs(product).created,
        "IF SCHEMA_ID(N'SalesLT') IS NULL EXEC (N'CREATE SCHEMA [SalesLT]');\n\
         IF TYPE_ID(N'[dbo].[Name]') IS NULL CREATE TYPE [dbo].[Name] FROM nvarchar(50) NULL;\n"
    );
    assert_eq!(script.needs(table(&database, "BuildVersion")), crate::Needs::default());
    let model = script.needs(table(&database, "ProductModel"));
    let collection = "XML schema collection [SalesLT].[ProductDescriptionSchemaCollection]";
    assert_eq!(model.left_out.into_iter().collect::<Vec<_>>(), [collection]);
    let details = script.foreign_keys(table(&database, "SalesOrderDetail")).concat();
    assert!(details.contains("ON DELETE CASCADE") && !details.contains("ON UPDATE"), "{details}");
    let modules = modules(&database, &definitions, path);
    let unread: Vec<_> =
        modules.iter().filter(|module| module.text.text().is_none()).map(|module| &module.name).collect();
    assert!(unread.is_empty(), "{unread:?}");
    let long = modules.iter().find(|module| module.name == "ufnGetAllCategories").unwrap();
    assert_eq!(long.kind, "FUNCTION");
    assert!(modules.iter().any(|module| module.text.text().is_some_and(|text| text.len() > 8000 / 2)), "off the row");
}

#[test]
fn a_key_is_rebuilt_with_the_foreign_keys_that_refer_to_it() {
    let Some((database, definitions)) = load("itsligo__sampledbs/northwnd.mdf") else { return };
    let script = Script::new(&database, &definitions);
    let region = table(&database, "Region");
    let text = script.rebuild_index(region, 2).unwrap();
    assert!(
        text.starts_with("ALTER INDEX [PK_Region] ON [dbo].[Region] DISABLE;\nALTER INDEX [PK_Region] ON"),
        "{text}"
    );
    assert!(text.contains("CHECK CONSTRAINT [FK_Territories_Region];"), "{text}");
    assert_eq!(script.rebuild_index(table(&database, "Products"), 1), None, "a clustered index is the table");
}

#[test]
fn no_name_or_text_of_the_catalog_becomes_a_statement_of_its_own() {
    let Some((mut database, mut definitions)) = load("itsligo__sampledbs/northwnd.mdf") else { return };
    let products = table(&database, "Products");
    let hostile = "a]\nGO\nDROP TABLE [b]; -- */ $(x)";
    database.objects.get_mut(&products).unwrap().name = hostile.to_owned();
    for column in database.columns.get_mut(&products).unwrap() {
        column.name.push_str(hostile);
    }
    for index in database.indexes.values_mut().filter(|index| index.object_id == products) {
        index.name.push_str(hostile);
    }
    for constraint in &mut database.constraints {
        constraint.name.push_str(hostile);
    }
    definitions.spoil("0)) DROP TABLE [b] --");
    let script = Script::new(&database, &definitions);
    let statements =
        [script.create_table(products).into_iter().collect(), script.keys(products), script.indexes(products)];
    let statements: Vec<String> =
        statements.into_iter().flatten().chain(script.checks(products)).chain(script.foreign_keys(products)).collect();
    assert!(statements.len() >= 7);
    for statement in statements {
        let batch = batch(&statement);
        assert_eq!(batch.lines().filter(|line| line.trim() == "GO").count(), 1, "{batch}");
        assert!(batch.ends_with("\nGO\n") && !batch.contains("$(") && !batch.contains("DROP TABLE [b] --"), "{batch}");
        // Outside brackets, strings and comments, the parentheses must match.
        assert!(expression::enclosed(&statement.replace(';', " ")).is_some(), "{statement}");
    }
}

#[test]
fn functions_and_sequences_that_expressions_name_must_exist_and_so_must_filegroups() {
    let Some((mut database, mut definitions)) = load("itsligo__sampledbs/northwnd.mdf") else { return };
    let products = table(&database, "Products");
    for (name, kind) in [("Region", "FN"), ("Territories", "SO"), ("Shippers", "FN")] {
        let id = table(&database, name);
        database.objects.get_mut(&id).unwrap().type_code = kind.to_owned();
    }
    definitions.spoil("([dbo].[Region](NEXT VALUE FOR [dbo].[Territories])+N'[dbo].[Shippers]')");
    for group in &mut database.filegroups {
        group.name = "Own".to_owned();
    }
    let needs = Script::new(&database, &definitions).needs(products);
    let must_exist: Vec<_> = needs.must_exist.iter().map(String::as_str).collect();
    assert_eq!(must_exist, ["filegroup [Own]", "function [dbo].[Region]", "sequence [dbo].[Territories]"]);
    assert_eq!(needs.created, "");
}
