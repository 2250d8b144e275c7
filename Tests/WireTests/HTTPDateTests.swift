import Expectations
import Testing
import Wire

@Suite struct HTTPDateTests {
    private let now = 1_795_000_000  // November 2026

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun Nov 06 08:49:37 1994",
    ]) func `the three date forms of RFC 9110 are the same moment`(_ text: String) {
        expectEqual(HTTPDate.parse(text, now: now), 784_111_777)
    }

    @Test func `dates are counted by the Gregorian calendar`() {
        expectEqual(HTTPDate.parse("Thu, 01 Jan 1970 00:00:00 GMT", now: now), 0)
        expectEqual(HTTPDate.parse("Thu, 29 Feb 2024 12:00:00 GMT", now: now), 1_709_208_000)
        expectEqual(HTTPDate.parse("Fri, 31 Dec 1999 23:59:60 GMT", now: now), 946_684_800)
    }

    @Test func `a year of two digits is at most fifty years ahead`() {
        expectEqual(HTTPDate.parse("Monday, 01-Jan-76 00:00:00 GMT", now: now), 3_345_062_400)
        expectEqual(HTTPDate.parse("Saturday, 01-Jan-77 00:00:00 GMT", now: now), 220_924_800)
    }

    @Test(arguments: [
        "", "yesterday", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Nox 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT GMT", "784111777",
    ]) func `text in no date form is not a date`(_ text: String) {
        expectNil(HTTPDate.parse(text, now: now))
    }

    @Test(arguments: [
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
        (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
    ])
    func `a date is written as an IMF-fixdate`(seconds: Int, text: String) {
        expectEqual(HTTPDate.format(seconds), text)
        expectEqual(HTTPDate.parse(text, now: now), seconds)
        #expect(HTTPDate.isCanonical(text))
    }
}
