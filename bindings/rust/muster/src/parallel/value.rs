// SPDX-License-Identifier: MIT
//! Values as bytes: numbers are little-endian; a value of variable length is preceded by its length.

use super::Outcome;

/// A type of arguments and results.
pub trait Value: Sized {
    /// Appends its bytes.
    fn put(&self, to: &mut Vec<u8>);
    /// Reads it from the beginning of the bytes; None: they do not begin with one.
    fn take(from: &mut &[u8]) -> Option<Self>;
    /// Reads it from all of these bytes.
    fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let value = Self::take(&mut bytes)?;
        if bytes.is_empty() {
            Some(value)
        } else {
            None
        }
    }
}

/// Bytes that are sent unchanged: faster than a `Vec<u8>`, which is a list of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

fn take_bytes<'a>(from: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    if from.len() < size {
        return None;
    }
    let (front, rest) = from.split_at(size);
    *from = rest;
    Some(front)
}

fn take_size(from: &mut &[u8]) -> Option<usize> {
    usize::try_from(u64::take(from)?).ok()
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    (bytes.len() as u64).put(to);
    to.extend_from_slice(bytes);
}

// Appends a value with its length before it.
pub(super) fn put_sized(to: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>) -> Outcome<()>) -> Outcome<()> {
    let at = to.len();
    0u64.put(to);
    put(to)?;
    let size = (to.len() - at - 8) as u64;
    to[at..at + 8].copy_from_slice(&size.to_le_bytes());
    Ok(())
}

pub(super) fn take_sized(mut from: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = take_size(&mut from)?;
    let bytes = take_bytes(&mut from, size)?;
    Some((bytes, from))
}

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(impl Value for $kind {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                let bytes = take_bytes(from, std::mem::size_of::<$kind>())?;
                Some(<$kind>::from_le_bytes(bytes.try_into().ok()?))
            }
        })*
    };
}
numbers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

impl Value for () {
    fn put(&self, _: &mut Vec<u8>) {}
    fn take(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

impl Value for bool {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        match take_bytes(from, 1)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl Value for Bytes {
    fn put(&self, to: &mut Vec<u8>) {
        put_bytes(to, &self.0);
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let size = take_size(from)?;
        Some(Bytes(take_bytes(from, size)?.to_vec()))
    }
}

impl Value for String {
    fn put(&self, to: &mut Vec<u8>) {
        put_bytes(to, self.as_bytes());
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        String::from_utf8(Bytes::take(from)?.0).ok()
    }
}

impl<T: Value> Value for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        if let Some(value) = self {
            value.put(to);
        }
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

impl<T: Value> Value for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u64).put(to);
        self.iter().for_each(|value| value.put(to));
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let count = take_size(from)?;
        // Memory is not reserved for the count in a message, which may be wrong; entries without bytes are limited.
        let mut all = Vec::with_capacity(count.min(from.len()));
        for _ in 0..count {
            if std::mem::size_of::<T>() == 0 && all.len() >= 1 << 20 {
                return None;
            }
            all.push(T::take(from)?);
        }
        Some(all)
    }
}

macro_rules! tuples {
    ($($name:ident),*) => {
        impl<$($name: Value),*> Value for ($($name,)*) {
            #[allow(non_snake_case)]
            fn put(&self, to: &mut Vec<u8>) {
                let ($($name,)*) = self;
                $($name.put(to);)*
            }
            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(($($name::take(from)?,)*))
            }
        }
    };
}
tuples!(A);
tuples!(A, B);
tuples!(A, B, C);
tuples!(A, B, C, D);

#[cfg(test)]
mod tests {
    use super::*;

    fn same<T: Value + PartialEq + std::fmt::Debug>(value: T) {
        let mut bytes = Vec::new();
        value.put(&mut bytes);
        assert_eq!(T::from_bytes(&bytes), Some(value));
        bytes.push(0);
        assert!(T::from_bytes(&bytes).is_none() || std::mem::size_of::<T>() == 0);
        for size in 0..bytes.len() - 1 {
            assert!(T::from_bytes(&bytes[..size]).is_none(), "{} bytes were enough", size);
        }
    }

    #[test]
    fn values_are_the_same_again() {
        same(7u8);
        same(-7i64);
        same(1.5f64);
        same(true);
        same("höher".to_string());
        same(Bytes(vec![1, 2, 3]));
        same(vec![Some(3u16), None]);
        same((1u32, "two".to_string(), vec![3u8]));
    }

    #[test]
    fn a_length_that_is_not_there_asks_for_no_memory() {
        let mut bytes = Vec::new();
        u64::MAX.put(&mut bytes);
        assert!(Vec::<u64>::from_bytes(&bytes).is_none());
        assert!(Vec::<()>::from_bytes(&bytes).is_none());
        assert!(String::from_bytes(&bytes).is_none());
    }
}
