import Testing

@testable import netwatch_service

@Suite struct NearestKeyTests {
    @Test(arguments: [
        ("interval", "interval", 0), ("intreval", "interval", 1), ("intervall", "interval", 1), ("", "abc", 3), ("abc", "", 3),
        ("kitten", "sitting", 3),
    ])
    func `the distance counts inserted, removed, replaced and exchanged letters`(first: String, second: String, distance: Int) {
        #expect(NearestKey.distance(first, second) == distance)
    }

    @Test func `a key that differs too much has no nearest one`() {
        #expect(NearestKey.find("frobnicate", among: Configuration.keys) == nil)
        #expect(NearestKey.find("Interval", among: Configuration.keys) == "interval")
        #expect(NearestKey.find("time-zone", among: Configuration.keys) == "time_zone")
        #expect(NearestKey.find(String(repeating: "x", count: 100_000), among: Configuration.keys) == nil)
    }

    @Test func `a limited number of keys is compared, and none whose length excludes it`() {
        let known = (0..<100_000).map { "g\($0)" }
        #expect(NearestKey.candidates(for: "g5000", among: known).count == NearestKey.candidateLimit)
        #expect(NearestKey.candidates(for: "g5", among: ["a long name of a group", "g"]) == ["g"])
        #expect(NearestKey.find("g1x", among: known) == "g1")
    }

    @Test(arguments: [("kitten", "sitting"), ("ab", "ba"), ("abcdef", "badcfe"), ("", "abc"), ("interval", "retention")])
    func `a distance beyond the limit is none`(first: String, second: String) throws {
        let distance = try #require(NearestKey.distance(first, second))
        #expect(NearestKey.distance(first, second, limit: distance) == distance)
        #expect(NearestKey.distance(first, second, limit: distance - 1) == nil)
    }
}
