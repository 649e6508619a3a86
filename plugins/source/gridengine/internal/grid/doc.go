// Package grid reads what Grid Engine's commands tell beside the accounting file:
// the hosts and their queues (qhost), the jobs that run and wait now (qstat), and who
// is in which group (getent).
//
// The readers take any text without panicking. What they do not understand is an
// error and never counted as less.
package grid
