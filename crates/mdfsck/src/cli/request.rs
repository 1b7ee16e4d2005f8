//! Turns the options of the command line into requests. Behind this door, nothing knows the command line.

use jobs::request::{
    Constraints, FormatChoice, ListenerOptions, NamingOptions, ProgressKind, RecoveryOptions, Request, ResultOptions,
    RoomOptions, RunOptions, ScopeOptions, SnapshotOptions, StopOptions, Weights, WindowOptions,
};
use source::backup::SetChoice;

use super::check::{
    CheckArguments, FormatKind, NamingArguments, ProgressKind as ProgressArgument, ResultArguments, RunArguments,
    ScopeArguments, TableColumns, WindowArguments,
};
use super::listener::ListenerArguments;
use super::recovery::{RecoveryArguments, RoomArguments, StopArguments};
use super::snapshot::SnapshotArguments;
use super::{CarveArguments, DatabaseArguments};

impl From<&CheckArguments> for Request {
    fn from(arguments: &CheckArguments) -> Self {
        let CheckArguments {
            paths,
            recursive,
            carve: CarveArguments { carve },
            scope,
            recovery,
            stop,
            estimate_only,
            databases,
            spool_limit,
            batches,
            settle_page,
            keep_parts,
            reread,
            part_pages,
            run,
            windows,
            snapshot,
            results,
        } = arguments;
        Self {
            paths: paths.clone(),
            recursive: *recursive,
            carve: *carve,
            scope: scope.into(),
            recovery: recovery.into(),
            stop: stop.into(),
            estimate_only: *estimate_only,
            databases: *databases,
            spool_limit: *spool_limit,
            batches: *batches,
            settle_page: *settle_page,
            keep_parts: *keep_parts,
            reread: *reread,
            only_by_change: None,
            part_pages: *part_pages,
            run: run.into(),
            windows: windows.into(),
            snapshot: snapshot.into(),
            results: results.into(),
        }
    }
}

impl DatabaseArguments {
    /// A full check of this database, with default options.
    pub(crate) fn request(&self, stop: &StopArguments) -> Request {
        let set = self.set.iter().map(|&position| SetChoice::Positions(vec![position])).collect();
        Request {
            scope: ScopeOptions { set, ..ScopeOptions::default() },
            recovery: (&self.recovery).into(),
            stop: stop.into(),
            ..Request::of_paths(self.paths.clone())
        }
    }
}

impl From<&ScopeArguments> for ScopeOptions {
    fn from(arguments: &ScopeArguments) -> Self {
        let ScopeArguments {
            set,
            physical_only,
            noindex,
            table,
            filegroup,
            alloc,
            catalog,
            data_purity,
            no_data_purity,
            extended_logical_checks,
            constraints,
            identity,
        } = arguments;
        Self {
            set: set.clone(),
            physical_only: *physical_only,
            noindex: *noindex,
            table: table.clone(),
            filegroup: filegroup.clone(),
            alloc: *alloc,
            catalog: *catalog,
            data_purity: *data_purity,
            no_data_purity: *no_data_purity,
            extended_logical_checks: *extended_logical_checks,
            constraints: constraints.map(Constraints::from),
            identity: *identity,
        }
    }
}

impl From<super::check::Constraints> for Constraints {
    fn from(constraints: super::check::Constraints) -> Self {
        match constraints {
            super::check::Constraints::Trusted => Self::Trusted,
            super::check::Constraints::All => Self::All,
        }
    }
}

impl From<&RecoveryArguments> for RecoveryOptions {
    fn from(arguments: &RecoveryArguments) -> Self {
        let RecoveryArguments { no_log, room } = arguments;
        Self { no_log: *no_log, room: room.into() }
    }
}

impl From<&RoomArguments> for RoomOptions {
    fn from(arguments: &RoomArguments) -> Self {
        let RoomArguments { memory, temp_dir } = arguments;
        Self { memory: *memory, temp_dir: temp_dir.clone() }
    }
}

impl From<&StopArguments> for StopOptions {
    fn from(arguments: &StopArguments) -> Self {
        let StopArguments { stop_at, stop_at_mark, stop_before_mark } = arguments;
        Self { stop_at: *stop_at, stop_at_mark: stop_at_mark.clone(), stop_before_mark: stop_before_mark.clone() }
    }
}

impl From<&RunArguments> for RunOptions {
    fn from(arguments: &RunArguments) -> Self {
        let RunArguments { maxdop, readers, direct, io_limit, nice, progress } = arguments;
        Self {
            maxdop: *maxdop,
            readers: *readers,
            direct: *direct,
            io_limit: *io_limit,
            nice: *nice,
            progress: (*progress).into(),
        }
    }
}

impl From<ProgressArgument> for ProgressKind {
    fn from(argument: ProgressArgument) -> Self {
        match argument {
            ProgressArgument::Auto => Self::Auto,
            ProgressArgument::Bar => Self::Bar,
            ProgressArgument::Lines => Self::Lines,
            ProgressArgument::Json => Self::Json,
            ProgressArgument::None => Self::None,
        }
    }
}

impl From<&WindowArguments> for WindowOptions {
    fn from(arguments: &WindowArguments) -> Self {
        let WindowArguments { window, within, range, image, weight, most_ranges } = arguments;
        Self {
            window: *window,
            within: *within,
            range: *range,
            image: image.clone(),
            weights: Weights(weight.clone()),
            most_ranges: *most_ranges,
            begun: None,
        }
    }
}

impl From<&SnapshotArguments> for SnapshotOptions {
    fn from(arguments: &SnapshotArguments) -> Self {
        let SnapshotArguments { snapshot_with, snapshot_argument } = arguments;
        Self { snapshot_with: snapshot_with.clone(), snapshot_argument: snapshot_argument.clone(), ..Self::default() }
    }
}

impl From<&ResultArguments> for ResultOptions {
    fn from(arguments: &ResultArguments) -> Self {
        let choice = arguments.choice();
        let ResultArguments {
            stats,
            format: _,
            json: _,
            tableresults: _,
            no_infomsgs,
            output,
            errorlog_line,
            log,
            max_findings,
            allow,
            exit_zero_on_incomplete,
            history,
            naming,
            html,
            listener,
        } = arguments;
        Self {
            stats: *stats,
            choice,
            no_infomsgs: *no_infomsgs,
            output: output.clone(),
            errorlog_line: errorlog_line.clone(),
            log: *log,
            max_findings: *max_findings,
            allow: allow.clone(),
            exit_zero_on_incomplete: *exit_zero_on_incomplete,
            history: history.clone(),
            naming: naming.into(),
            html: html.clone(),
            listener: listener.into(),
            watched: None,
        }
    }
}

impl ResultArguments {
    /// The format that was asked for.
    fn choice(&self) -> FormatChoice {
        if let Some(columns) = self.tableresults {
            return FormatChoice::TableResults(columns.into());
        }
        match self.format {
            _ if self.json => FormatChoice::Json,
            None => FormatChoice::Default,
            Some(FormatKind::Summary) => FormatChoice::Summary,
            Some(FormatKind::Text) => FormatChoice::Text,
            Some(FormatKind::Json) => FormatChoice::Json,
            Some(FormatKind::Tableresults) => FormatChoice::TableResults(TableColumns::Newer.into()),
        }
    }

    /// Whether results go to stdout as JSON lines.
    pub(super) fn are_json(&self) -> bool {
        let is_stdout = self.output.as_ref().is_none_or(|path| path.as_os_str() == "-");
        self.choice() == FormatChoice::Json && is_stdout
    }
}

impl From<&NamingArguments> for NamingOptions {
    fn from(arguments: &NamingArguments) -> Self {
        let NamingArguments { server, replicas } = arguments;
        Self { server: server.clone(), replicas: *replicas }
    }
}

impl From<&ListenerArguments> for ListenerOptions {
    fn from(arguments: &ListenerArguments) -> Self {
        let ListenerArguments { on_event, event_argument, event_seconds } = arguments;
        Self { on_event: on_event.clone(), event_argument: event_argument.clone(), event_seconds: *event_seconds }
    }
}
