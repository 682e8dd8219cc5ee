//! Shell patterns over names.

/// Whether `text` has anything of a pattern in it.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Whether `pattern` matches all of `name`, ignoring case: `*` is any characters or none, `?` is one.
///
/// Looks back to the last `*` only, which suffices: an earlier one could match nothing that this one cannot.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.as_bytes(), name.as_bytes());
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => return true,
            (Some((b'*', after)), _) => {
                retry = Some((after, name));
                pattern = after;
            }
            (Some((wanted, after)), Some((found, rest))) if *wanted == b'?' || wanted.eq_ignore_ascii_case(found) => {
                pattern = after;
                name = rest;
            }
            // Let the last `*` take one character more.
            _ => match retry.and_then(|(after, from)| Some((after, from.split_first()?.1))) {
                None => return false,
                Some((after, from)) => {
                    retry = Some((after, from));
                    pattern = after;
                    name = from;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "Send", true),
            ("?", "", false),
            ("isend*", "Isend", true),
            ("Isend*", "Isend_c", true),
            ("Isend*", "Send", false),
            ("*_init", "Bcast_init", true),
            ("*_init", "Bcast_init_c", false),
            ("?send", "Isend", true),
            ("?send", "Send", false),
            ("*all*v*", "Alltoallv_c", true),
            ("*all*v*", "Alltoallw", false),
            ("a*b*c", "aXbXbXc", true),
            ("**x", "yx", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }
}
