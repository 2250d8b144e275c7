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
}
