// Package auditor has what all servers of AUDITOR's interface share, an agent's
// receiver and the aggregator alike: the words that its clients compare, how an
// answer is given, and how a body is read.
//
// AUDITOR's clients look at the body of the answer to a POST and at nothing else:
// all but [Exists] is success, and the collectors then delete their copy. So a
// server answers only what is final – stored, exists, not understood, too large –
// and ends the connection with [BreakOff] where it cannot say that now.
package auditor
