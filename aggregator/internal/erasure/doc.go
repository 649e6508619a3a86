// Package erasure takes people's names out of records: at the command of an operator, and
// after the time that the configuration says.
package erasure
