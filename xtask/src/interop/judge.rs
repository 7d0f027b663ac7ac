//! What a client says about its checks.

use serde_json::Value;

use crate::process::Program;

/// Runs a walk and counts its checks; any check that failed, or a walk without checks, is an error.
pub(crate) fn judge(walk: Program) -> Result<usize, String> {
    let (status, output) = walk.output()?;
    let checks = checks(&output)?;
    if !status.success() {
        return Err(format!("{status} after {checks} checks that passed"));
    }
    if checks == 0 { Err("it checked nothing".to_owned()) } else { Ok(checks) }
}

fn checks(output: &str) -> Result<usize, String> {
    let mut passed = 0;
    let mut failed = Vec::new();
    for line in output.lines() {
        let check: Value = serde_json::from_str(line).map_err(|_| format!("not a check: {line}"))?;
        if check["ok"] == true {
            passed += 1;
        } else {
            failed.push(format!("\n      {line}"));
        }
    }
    if failed.is_empty() {
        Ok(passed)
    } else {
        Err(format!("{} of its checks failed{}", failed.len(), failed.concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::checks;

    #[test]
    fn checks_are_counted() {
        assert_eq!(checks("{\"check\":\"a\",\"ok\":true}\n{\"check\": \"b\", \"ok\": true}\n"), Ok(2));
        assert_eq!(checks(""), Ok(0));
    }

    #[test]
    fn a_failed_check_and_noise_are_errors() {
        let error = checks("{\"check\":\"a\",\"ok\":true}\n{\"check\":\"b\",\"ok\":false,\"error\":\"no\"}")
            .unwrap_err();
        assert!(error.starts_with("1 of its checks failed") && error.contains("\"b\""), "{error}");
        assert_eq!(checks("Segmentation fault"), Err("not a check: Segmentation fault".to_owned()));
    }
}
