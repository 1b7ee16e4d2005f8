//! Tests the metrics of `mdfsck watch` with the tools that read them, promtool and node_exporter.

use super::*;

/// Tests that need promtool and node_exporter.
pub(in super::super) fn with_other_tools() -> Vec<Trial> {
    let name =
        "watch writes metrics that promtool and node_exporter accept, and alert rules that fire when they should";
    let tools = [("promtool", is_here("promtool")), ("node_exporter", is_here("prometheus-node-exporter"))];
    vec![needs(&tools, name, metrics)]
}

fn metrics(folder: &Path) -> Result<(), Failed> {
    hurt(folder, "one", "1")?;
    backup(folder, "two", "2", &["--compressed"])?;
    fs::create_dir(folder.join("collected"))?;
    let output = watch(folder, &["--metrics", "collected/mdfsck.prom"]);
    ensure(output.status.code() == Some(1), format!("{output:?}"))?;
    let names: Vec<_> = fs::read_dir(folder.join("collected"))?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()?;
    ensure(names == ["mdfsck.prom"], format!("{names:?}"))?;
    let file = fs::File::open(folder.join("collected/mdfsck.prom"))?;
    let checked = Command::new("promtool").args(["check", "metrics"]).stdin(file).output()?;
    ensure(checked.status.success() && checked.stdout.is_empty() && checked.stderr.is_empty(), format!("{checked:?}"))?;
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/monitoring");
    let rules = Command::new("promtool").args(["test", "rules"]).arg(samples.join("mdfsck.rules.test.yml")).output()?;
    ensure(rules.status.success(), format!("{rules:?}"))?;
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(samples.join("mdfsck.dashboard.json"))?)?;
    let prom = fs::read_to_string(folder.join("collected/mdfsck.prom"))?;
    for panel in dashboard["panels"].as_array().into_iter().flatten() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap_or_default();
            let is_name = |part: &&str| part.starts_with("mdfsck_");
            let parts = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(is_name);
            for name in parts {
                // The metrics file shows that one of the two databases is damaged. It must contain every metric that
                // the dashboard uses.
                ensure(prom.contains(&format!("# TYPE {name} ")), format!("{name} is no metric:\n{prom}"))?;
            }
        }
    }
    exported(folder)
}

/// Requires that node_exporter reads the file without an error.
fn exported(folder: &Path) -> Result<(), Failed> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut exporter = Command::new("prometheus-node-exporter")
        .args(["--collector.disable-defaults", "--collector.textfile"])
        .arg(format!("--collector.textfile.directory={}", folder.join("collected").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stderr(Stdio::null())
        .spawn()?;
    let mut answer = String::new();
    for _ in 0..100 {
        thread::sleep(Duration::from_millis(100));
        let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else { continue };
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        std::io::Read::read_to_string(&mut stream, &mut answer)?;
        break;
    }
    exporter.kill()?;
    exporter.wait()?;
    ensure(answer.contains("node_textfile_scrape_error 0"), answer.clone())?;
    ensure(answer.contains("mdfsck_findings{database=\"orders\""), answer)
}
