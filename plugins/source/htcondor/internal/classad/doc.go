// Package classad reads ClassAds as HTCondor writes them: the long form of its history
// files, with their banners, and the JSON form of its commands. It evaluates nothing: an
// expression is kept as its text.
//
// The parsers take any text without panicking.
package classad
