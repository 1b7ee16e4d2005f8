//! Prints docs/expressions.md. If expressions are given on the command line, prints their values instead.

fn main() {
    let expressions: Vec<String> = std::env::args().skip(1).collect();
    if expressions.is_empty() {
        print!("{}", expr::table::markdown());
    }
    for text in expressions {
        println!("{}", expr::table::show(&text));
    }
}
