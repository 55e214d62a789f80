//! A judged claim and its verdict.

use crate::config::{ClaimKind, HeadlineCause};
use serde::{Serialize, Serializer};

/// Verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// The claim holds.
    Holds,
    /// The claim holds with the study's assumptions, but not with other seeds or another free
    /// choice.
    Fragile,
    /// The claim holds, because a number of the setup was chosen so that the claim holds.
    Fitted,
    /// The interval of the obtained value reaches to both sides of the bound.
    Undecided,
    /// The claim does not hold.
    DoesNotHold,
    /// The claim does not hold, but holds in the variant that explains the difference.
    DiffersExplained,
    /// The claim holds although the study explains why it should not.
    HoldsThoughExplained,
    /// Points of the claim have no results yet.
    NotRun,
    /// The expression has no value because it names a point outside the study.
    Broken,
}

/// A claim with its obtained value and verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedClaim {
    /// The claim's name.
    pub id: String,
    /// The claim as a sentence.
    pub says: String,
    /// Quoted sentence of the source.
    pub quote: Option<String>,
    /// Place of the quote in the source.
    pub at: Option<String>,
    /// True if the claim is this project's own.
    pub ours: bool,
    /// Kind of the claim.
    pub kind: ClaimKind,
    /// Published value, in the units of the obtained value.
    pub published: String,
    /// Rule by which the claim holds, and origin of its bound.
    pub holds_if: String,
    /// Obtained value as text.
    pub shown: String,
    /// Obtained value if it is a number.
    pub obtained: Option<f64>,
    /// Half the width of the interval of `obtained`, if there is one.
    pub ci_half_width: Option<f64>,
    /// Verdict on the claim.
    pub verdict: ClaimVerdict,
    /// Reason why the claim does not hold, proved or supposed. For a broken claim: the error.
    pub why: Option<String>,
    /// Tested settings that reverse the verdict.
    pub flips: Vec<String>,
    /// Tested settings that leave the claim undecided. They reverse no verdict.
    pub undecided_with: Vec<String>,
    /// True if the estimate alone, without its interval, fulfils the claim.
    pub estimate_holds: bool,
    /// Cause of the result, if the claim is a headline of the source.
    pub headline: Option<Headline>,
}

/// Cause of a headline's result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Headline {
    /// Class of the cause.
    pub cause: HeadlineCause,
    /// The cause in words, with the numbers that show the cause.
    pub why: String,
}

#[cfg(test)]
impl JudgedClaim {
    /// Returns the claim `T-1` with a verdict, without results.
    pub(crate) fn of_test(verdict: ClaimVerdict, estimate_holds: bool) -> JudgedClaim {
        JudgedClaim {
            id: "T-1".to_owned(),
            says: String::new(),
            quote: None,
            at: None,
            ours: true,
            kind: ClaimKind::Near,
            published: String::new(),
            holds_if: String::new(),
            shown: "+15.5 ± 47.8 %".to_owned(),
            obtained: None,
            ci_half_width: None,
            verdict,
            why: None,
            flips: Vec::new(),
            undecided_with: Vec::new(),
            estimate_holds,
            headline: None,
        }
    }
}

impl Serialize for ClaimVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl ClaimVerdict {
    /// All verdicts in the order of the tables.
    pub const ALL: [ClaimVerdict; 9] = [
        ClaimVerdict::Holds,
        ClaimVerdict::Fragile,
        ClaimVerdict::Fitted,
        ClaimVerdict::Undecided,
        ClaimVerdict::DiffersExplained,
        ClaimVerdict::DoesNotHold,
        ClaimVerdict::HoldsThoughExplained,
        ClaimVerdict::NotRun,
        ClaimVerdict::Broken,
    ];

    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::Fragile => "fragile",
            ClaimVerdict::Fitted => "fitted",
            ClaimVerdict::Undecided => "undecided",
            ClaimVerdict::DoesNotHold => "does-not-hold",
            ClaimVerdict::DiffersExplained => "differs-explained",
            ClaimVerdict::HoldsThoughExplained => "holds-though-explained",
            ClaimVerdict::NotRun => "not-run",
            ClaimVerdict::Broken => "broken",
        }
    }

    /// Returns the name in tables.
    pub fn text(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::Fragile => "fragile",
            ClaimVerdict::Fitted => "fitted",
            ClaimVerdict::Undecided => "undecided",
            ClaimVerdict::DoesNotHold => "does not hold",
            ClaimVerdict::DiffersExplained => "differs, explained",
            ClaimVerdict::HoldsThoughExplained => "holds; its explanation is stale",
            ClaimVerdict::NotRun => "not run",
            ClaimVerdict::Broken => "broken",
        }
    }

    /// Returns true if a check accepts the verdict. A stale explanation is not accepted: its words
    /// give a reason for a difference that is no longer there.
    pub fn passes(self) -> bool {
        matches!(
            self,
            ClaimVerdict::Holds
                | ClaimVerdict::Fragile
                | ClaimVerdict::Fitted
                | ClaimVerdict::Undecided
                | ClaimVerdict::DiffersExplained
        )
    }
}
