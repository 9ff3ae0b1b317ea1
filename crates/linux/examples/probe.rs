fn main() {
    let a: Vec<String> = std::env::args().collect();
    agent_desktop_linux::probe(&a[1], a.iter().any(|x| x == "--all"), a.iter().any(|x| x == "--cache"), a.iter().any(|x| x == "--p2p"));
}
