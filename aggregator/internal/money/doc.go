// Package money says what usage costs and what is left of a budget.
//
// [Prices] are dated lists of what an amount of a component costs for an hour, or
// what one of a total costs: for everybody, for a class of hosts, for a group, a
// project. They make the weight "cost" of package derive, which values usage.
//
// [Budgets] are amounts of money, of service units or of hours that a group or a
// project has for a period. A [Statement] says what is used, what running jobs may
// still use, what is left, and when it will be gone.
//
// All figures are exact, in integers; they are rounded when they are written.
package money
