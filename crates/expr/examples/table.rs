//! Prints docs/expressions.md, or what the expressions on the command line give.

fn main() {
    let expressions: Vec<String> = std::env::args().skip(1).collect();
    if expressions.is_empty() {
        print!("{}", expr::table::markdown());
    }
    for text in expressions {
        println!("{}", expr::table::show(&text));
    }
}
