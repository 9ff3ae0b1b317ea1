//! Points and rectangles on the desktop.
//!
//! One coordinate space everywhere: logical pixels, origin at the top left of the primary display, y downwards.
//! Each platform converts once, at its edge.

/// A point, logical pixels on the desktop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Pixels from the left.
    pub x: f64,
    /// Pixels from the top.
    pub y: f64,
}

/// A rectangle, logical pixels on the desktop.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Rect {
    /// Left edge.
    pub x: f64,
    /// Top edge.
    pub y: f64,
    /// Width, not negative.
    pub width: f64,
    /// Height, not negative.
    pub height: f64,
}

impl Rect {
    /// A rectangle from whole pixels.
    pub fn from_pixels(x: i32, y: i32, width: i32, height: i32) -> Rect {
        Rect { x: f64::from(x), y: f64::from(y), width: f64::from(width), height: f64::from(height) }
    }

    /// Whether there is anything inside.
    pub fn is_empty(&self) -> bool {
        !(self.width > 0.0 && self.height > 0.0)
    }

    /// The middle.
    pub fn center(&self) -> Point {
        Point { x: self.x + self.width / 2.0, y: self.y + self.height / 2.0 }
    }

    /// The point at these fractions of width and height.
    pub fn at(&self, across: f64, down: f64) -> Point {
        Point { x: self.x + self.width * across, y: self.y + self.height * down }
    }

    /// Whether the point is inside; right and bottom edges are outside.
    pub fn contains(&self, point: Point) -> bool {
        point.x >= self.x
            && point.y >= self.y
            && point.x < self.x + self.width
            && point.y < self.y + self.height
    }

    /// What both cover, if anything.
    pub fn intersection(&self, other: &Rect) -> Option<Rect> {
        let x = self.x.max(other.x);
        let y = self.y.max(other.y);
        let right = (self.x + self.width).min(other.x + other.width);
        let bottom = (self.y + self.height).min(other.y + other.height);
        (right > x && bottom > y).then_some(Rect { x, y, width: right - x, height: bottom - y })
    }

    /// The rectangle moved by this much.
    #[must_use]
    pub fn offset(&self, dx: f64, dy: f64) -> Rect {
        Rect { x: self.x + dx, y: self.y + dy, ..*self }
    }

    /// Whether all four numbers differ by no more than `tolerance` pixels.
    pub fn is_near(&self, other: &Rect, tolerance: f64) -> bool {
        (self.x - other.x).abs() <= tolerance
            && (self.y - other.y).abs() <= tolerance
            && (self.width - other.width).abs() <= tolerance
            && (self.height - other.height).abs() <= tolerance
    }

    /// A hash of the coordinates in hundredths of a pixel, stable between runs and machines (FNV-1a).
    pub fn stable_hash(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for number in [self.x, self.y, self.width, self.height] {
            for byte in ((number * 100.0).round() as i64).to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_belong_to_the_left_and_top() {
        let rect = Rect::from_pixels(10, 10, 5, 5);
        assert!(rect.contains(Point { x: 10.0, y: 14.9 }));
        assert!(!rect.contains(Point { x: 15.0, y: 12.0 }));
    }

    #[test]
    fn touching_rectangles_share_nothing() {
        assert_eq!(Rect::from_pixels(0, 0, 5, 5).intersection(&Rect::from_pixels(5, 0, 5, 5)), None);
    }

    #[test]
    fn hash_ignores_less_than_a_hundredth() {
        let rect = Rect::from_pixels(1, 2, 3, 4);
        assert_eq!(rect.stable_hash(), rect.offset(0.001, 0.0).stable_hash());
        assert_ne!(rect.stable_hash(), rect.offset(0.01, 0.0).stable_hash());
    }
}
