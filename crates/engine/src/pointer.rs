//! What pointer commands share: coordinates, buttons and modifiers as a caller writes them.

use agent_desktop_core::action::MouseButton;
use agent_desktop_core::error::{Error, Result};
use agent_desktop_core::geometry::Point;
use agent_desktop_core::key::Modifier;

/// Largest coordinate, either way.
pub(crate) const MAX_COORDINATE: f64 = 1e7;

/// Parses `X,Y`: two finite numbers and one comma, spaces allowed.
///
/// # Errors
/// `INVALID_ARGS`.
pub fn parse_point(text: &str) -> Result<Point> {
    let wrong = || {
        Error::invalid("not a point: it is written X,Y with two numbers up to 10000000")
            .hint("logical pixels on the desktop, such as 310,88.5")
    };
    let (x, y) = text.split_once(',').ok_or_else(wrong)?;
    match (coordinate(x), coordinate(y)) {
        (Some(x), Some(y)) => Ok(Point { x, y }),
        _ => Err(wrong()),
    }
}

fn coordinate(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|&number| is_coordinate(number))
}

/// Whether a number can be a coordinate.
pub fn is_coordinate(number: f64) -> bool {
    number.is_finite() && number.abs() <= MAX_COORDINATE
}

/// Parses a button by its name; `left` by default.
///
/// # Errors
/// `INVALID_ARGS`.
pub fn parse_button(text: Option<&str>) -> Result<MouseButton> {
    match text {
        None | Some("left") => Ok(MouseButton::Left),
        Some("right") => Ok(MouseButton::Right),
        Some("middle") => Ok(MouseButton::Middle),
        Some(_) => Err(Error::invalid("not a button: left, right or middle")),
    }
}

/// Parses modifiers, each given at most once.
///
/// # Errors
/// `INVALID_ARGS`.
pub fn parse_modifiers(words: &[String]) -> Result<Vec<Modifier>> {
    let mut modifiers = Vec::new();
    for word in words {
        let modifier = Modifier::parse(word.trim())
            .ok_or_else(|| Error::invalid("not a modifier: ctrl, alt, shift or meta"))?;
        if modifiers.contains(&modifier) {
            return Err(Error::invalid(format!("the modifier {} is given twice", modifier.as_str())));
        }
        modifiers.push(modifier);
    }
    Ok(modifiers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_as_the_contract_writes_them() {
        assert_eq!(parse_point(" 310 , -88.5 ").unwrap(), Point { x: 310.0, y: -88.5 });
        for bad in ["", "1", "1,", ",1", "1,2,3", "a,b", "nan,1", "inf,1", "1e8,1", "1;2"] {
            assert!(parse_point(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn modifiers_only_once() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        assert_eq!(parse_modifiers(&words(&["Shift", "cmd"])).unwrap(), [Modifier::Shift, Modifier::Meta]);
        assert!(parse_modifiers(&words(&["ctrl", "control"])).is_err());
        assert!(parse_modifiers(&words(&["hyper"])).is_err());
    }
}
