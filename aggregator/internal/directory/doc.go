// Package directory says to whom usage belongs: which group a user is in, which
// project claims a group or a user, who the principal investigator of a project is,
// who is exempt, who contributed what, and how many service units a core-hour of a
// host is worth. All of it is dated, so that every instant of a run counts with what
// held then.
//
// [Make] makes a [Directory] of what the configuration says and of what sources have
// told; it is never changed. [Directory.Keys] and [Directory.Units] are what package
// derive needs to answer by project and to count in service units; [Directory.Classes]
// is the class of a host for package usage. A [Keeper] has the one that holds now.
//
// Usage without a project has no value: it is a line of its own in every answer.
package directory
