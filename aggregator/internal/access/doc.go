// Package access says who asks and what it may: the principal of a request, the
// roles that each route takes, and the view of the store in which a principal
// finds its own rows and no others.
//
// Readers of the store go through a [Reader], which wants a [Principal] and gives
// a [View]. The zero principal may do nothing and sees nothing, so what is
// forgotten is refused.
package access
