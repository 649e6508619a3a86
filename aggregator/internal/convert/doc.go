// Package convert turns configurations of other accounting systems into bursar's: AUDITOR's
// YAML, the settings of ai4-accounting, and the tables of ClusterAccountant.
//
// A setting becomes what has the same effect. One without an equal becomes a comment that
// says why, and one whose meaning is another is listed as a [Change] too.
package convert
