//! The options of `mdfsck serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub(crate) struct ServeArguments {
    /// The file that 'mdfsck check --history FILE' writes
    #[arg(long, value_name = "FILE")]
    pub(crate) history: PathBuf,

    /// Address and port to listen on; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8898")]
    pub(crate) listen: SocketAddr,

    /// Listen on an address that other machines reach: whoever does can read all pages, without encryption
    #[arg(long)]
    pub(crate) allow_remote: bool,

    /// Answer also if called by this name, such as the one that a proxy passes on; repeatable
    ///
    /// Addresses and localhost are answered anyway; with --allow-remote, the name of this machine too. Other names are refused: a page
    /// elsewhere could make its own name lead here.
    #[arg(long, value_name = "HOST")]
    pub(crate) name: Vec<String>,

    /// Findings may be acknowledged by those who have the token, which is printed at the start
    #[arg(long)]
    pub(crate) allow_ack: bool,

    /// Take the token from this file instead: one line of at least 16 characters
    #[arg(long, value_name = "FILE", requires = "allow_ack")]
    pub(crate) token_file: Option<PathBuf>,
}
