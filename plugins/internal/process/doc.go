// Package process starts, watches and kills programs, and checks the commands of
// configurations: no program may become another one by what is filled in.
package process
