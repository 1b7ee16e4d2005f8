//! The options of `mdfsck serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub(crate) struct ServeArguments {
    /// The file that 'mdfsck check --history FILE' writes
    #[arg(long, value_name = "FILE")]
    pub(crate) history: PathBuf,

    /// Address and port to listen on; port 0 selects any free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8898")]
    pub(crate) listen: SocketAddr,

    /// Answer requests without a token, for use behind a proxy that authenticates users
    ///
    /// Without this option, a request needs the token in the address that mdfsck prints. The token changes with each
    /// start of the server; a browser keeps it as a cookie. The token is important because pages show bytes of rows.
    #[arg(long)]
    pub(crate) no_token: bool,

    /// Allow --listen to use an address that other machines can reach; connections are not encrypted
    #[arg(long)]
    pub(crate) allow_remote: bool,

    /// Also answer requests for this host name, such as the name that a proxy forwards; repeatable
    ///
    /// Requests for IP addresses and localhost are always answered; with --allow-remote, also requests for the name of
    /// this machine. Requests for other names are refused, because a hostile web site could make its own host name
    /// resolve to the address of this server.
    #[arg(long, value_name = "HOST")]
    pub(crate) name: Vec<String>,

    /// Let users acknowledge findings if they have a second token, which is printed when the server starts
    #[arg(long)]
    pub(crate) allow_ack: bool,

    /// Read the token of --allow-ack from this file: one line of at least 16 characters
    #[arg(long, value_name = "FILE", requires = "allow_ack")]
    pub(crate) token_file: Option<PathBuf>,
}
