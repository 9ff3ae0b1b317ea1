//! Scratch driver for trying the window system by hand.
#![allow(missing_docs, clippy::all, clippy::pedantic)]
use agent_desktop_linux::window_system::*;
use std::time::{Duration, Instant};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let until = || Instant::now() + Duration::from_secs(10);
    let x = X11::connect(None, until()).unwrap();
    let start = Instant::now();
    match args[0].as_str() {
        "list" => {
            let l = x.windows(until()).unwrap();
            println!("{:?}", start.elapsed());
            for w in &l.windows {
                println!("{w:?}");
            }
            for p in &l.popups {
                println!("POPUP {p:?}");
            }
            println!(
                "wm {} active {:?} displays {:?}",
                l.has_window_manager,
                x.active_window(until()),
                x.displays(until())
            );
        }
        "type" => {
            let r = x.type_text(&args[1], TypingOptions::default(), until());
            println!("{r:?} {:?}", start.elapsed());
        }
        "chord" => {
            let m: Vec<_> = args[2..].iter().map(|m| keysym_for_name(m).unwrap()).collect();
            println!("{:?}", x.press_chord(&m, keysym_for_name(&args[1]).unwrap(), until()));
        }
        "region" => {
            let c = x.capture_region(Rectangle::new(0, 0, 5000, 5000), until()).unwrap();
            println!("{c:?} {:?}", start.elapsed());
            let s = Instant::now();
            let png = encode_png(&c.image);
            println!("png {} {:?}", png.len(), s.elapsed());
            std::fs::write(&args[1], png).unwrap();
        }
        "window" => {
            let id = WindowId(u32::from_str_radix(args[1].trim_start_matches("0x"), 16).unwrap());
            let c = x.capture_window(id, until());
            println!("{c:?} {:?}", start.elapsed());
            if let Ok(c) = c {
                std::fs::write(&args[2], encode_png(&c.image)).unwrap();
            }
        }
        "at" => {
            println!(
                "{:?}",
                x.window_at(Point { x: args[1].parse().unwrap(), y: args[2].parse().unwrap() }, until())
            );
        }
        "click" => {
            println!(
                "{:?}",
                x.click(
                    Point { x: args[1].parse().unwrap(), y: args[2].parse().unwrap() },
                    Button::Left,
                    args[3].parse().unwrap(),
                    &[],
                    until()
                )
            );
        }
        "activate" => {
            println!(
                "{:?}",
                x.activate(
                    WindowId(u32::from_str_radix(args[1].trim_start_matches("0x"), 16).unwrap()),
                    until()
                )
            );
        }
        other => panic!("{other}"),
    }
}
