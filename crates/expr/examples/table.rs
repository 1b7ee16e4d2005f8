//! Prints docs/expressions.md, or the results of the expressions that are given on the command line.

fn main() {
    let expressions: Vec<String> = std::env::args().skip(1).collect();
    if expressions.is_empty() {
        print!("{}", expr::table::markdown());
    }
    for text in expressions {
        println!("{}", expr::table::show(&text));
    }
}
