// Package accounting says to whom usage belongs, what it is worth, what is left of a
// budget, and what there was to use. All of it is dated, so that every instant of a run
// counts with what held then, and all figures are exact until they are written.
//
// A [Directory] says which group a user is in, which project claims a group or a user,
// who the principal investigator of a project is, who is exempt, who contributed what,
// and how many service units a core-hour of a host is worth. Usage without a project is
// a line of its own in every answer.
//
// [Prices] are dated lists of what an amount of a component costs for an hour, or what
// one of a total costs: for all, for a class of hosts, for a group, a project. They make
// the measure "cost". [Budgets] are amounts of money, of service units or of hours that
// a group or a project has for a period. A [Statement] says what is used, what running
// jobs may still use, what is left, and when it will be gone.
//
// [Capacities] are what clusters have and since when – cores, memory, GPUs, service
// units – so that what was used can be compared with what was there: what the
// configuration says ([CapacityPlan]) and what sources say ([CapacityFact]) together.
// What no one says is unknown, never zero.
//
// A [Keeper] has the [Set] that holds now. It is made again when the configuration or
// what sources say changes, and never changes itself: who answers a request takes
// [Keeper.Now] once.
package accounting
