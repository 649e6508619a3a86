package record

// floorDivide returns the quotient rounded down and the remainder, which is not
// negative.
func floorDivide(a, b int64) (quotient, remainder int64) {
	quotient, remainder = a/b, a%b
	if remainder < 0 {
		return quotient - 1, remainder + b
	}
	return quotient, remainder
}

// Days are counted in eras of 400 years that begin on a first of March, so that
// the leap day is the last of its year and every era has the same length.
const (
	eraDays  = 146_097
	eraShift = 719_468 // days from 0000-03-01 to 1970-01-01
)

// civilDate returns the date of a day since 1970-01-01.
func civilDate(days int64) (year, month, day int64) {
	era, inEra := floorDivide(days+eraShift, eraDays)
	inYear := (inEra - inEra/1460 + inEra/36524 - inEra/146096) / 365
	yearDay := inEra - (365*inYear + inYear/4 - inYear/100)
	shifted := (5*yearDay + 2) / 153 // months since March
	year, month, day = inYear+400*era, shifted+3, yearDay-(153*shifted+2)/5+1
	if month > 12 {
		year, month = year+1, month-12
	}
	return year, month, day
}

// daysOf is the inverse of civil.
func daysOf(year, month, day int64) int64 {
	if month < 3 {
		year, month = year-1, month+12
	}
	era, inEra := floorDivide(year, 400)
	yearDay := (153*(month-3)+2)/5 + day - 1
	return era*eraDays + inEra*365 + inEra/4 - inEra/100 + yearDay - eraShift
}

// daysIn is the length of a month.
func daysIn(year, month int64) int64 {
	switch {
	case month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0):
		return 29
	case month == 2:
		return 28
	case month == 4 || month == 6 || month == 9 || month == 11:
		return 30
	}
	return 31
}

// parseTime reads yyyy-mm-ddThh:mm:ss, a fraction and an offset.
func parseTime(s string) (Time, bool) {
	const clock = len("2006-01-02T15:04:05")
	if len(s) <= clock || s[4] != '-' || s[7] != '-' || s[13] != ':' || s[16] != ':' ||
		s[10] != 'T' && s[10] != 't' && s[10] != ' ' {
		return None, false
	}
	year, month, day := 100*twoDigits(s, 0)+twoDigits(s, 2), twoDigits(s, 5), twoDigits(s, 8)
	hour, minute, second := twoDigits(s, 11), twoDigits(s, 14), twoDigits(s, 17)
	if twoDigits(s, 0)|twoDigits(s, 2)|month|day|hour|minute|second < 0 ||
		month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 60 {
		return None, false
	}
	micro, n := parseFraction(s[clock:])
	if n < 0 {
		return None, false
	}
	shift, ok := parseOffset(s[clock+n:])
	if !ok {
		return None, false
	}
	seconds := (daysOf(year, month, day)*24+hour)*3600 + minute*60 + second - shift
	return Time(seconds*int64(Second) + micro), true
}

// twoDigits reads the two digits at i; a negative number when there are none.
func twoDigits(s string, i int) int64 {
	a, b := s[i]-'0', s[i+1]-'0'
	if a > 9 || b > 9 {
		return -1 << 32
	}
	return int64(a)*10 + int64(b)
}

// parseFraction reads a point and digits as microseconds and returns how long they
// are; a length below zero when there is a point alone.
func parseFraction(s string) (micro int64, length int) {
	if s == "" || s[0] != '.' {
		return 0, 0
	}
	i := 1
	for unit := int64(100_000); i < len(s) && s[i]-'0' <= 9; i++ {
		micro += int64(s[i]-'0') * unit
		unit /= 10
	}
	if i == 1 {
		return 0, -1
	}
	return micro, i
}

// parseOffset reads Z, ±hh:mm or ±hhmm as seconds.
func parseOffset(s string) (seconds int64, ok bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	if len(s) == 6 && s[3] == ':' {
		s = s[:3] + s[4:]
	}
	if len(s) != 5 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hour, minute := twoDigits(s, 1), twoDigits(s, 3)
	if hour < 0 || minute < 0 || hour > 23 || minute > 59 {
		return 0, false
	}
	seconds = hour*3600 + minute*60
	if s[0] == '-' {
		return -seconds, true
	}
	return seconds, true
}
