import Expectations
import Testing

@testable import Console
@testable import netwatch_service

@Suite struct NearestKeyTests {
    @Test(arguments: [
        ("interval", "interval", 0), ("intreval", "interval", 1), ("intervall", "interval", 1), ("", "abc", 3), ("abc", "", 3),
        ("kitten", "sitting", 3),
    ])
    func `the distance counts inserted, removed, replaced and exchanged letters`(first: String, second: String, distance: Int) {
        expectEqual(NearestKey.distance(first, second), distance)
    }

    @Test func `a key that differs too much has no nearest one`() {
        expectNil(NearestKey.find("frobnicate", among: Configuration.keys.names))
        expectEqual(NearestKey.find("Interval", among: Configuration.keys.names), "interval")
        expectEqual(NearestKey.find("time-zone", among: Configuration.keys.names), "time_zone")
        expectNil(NearestKey.find(String(repeating: "x", count: 100_000), among: Configuration.keys.names))
    }

    @Test func `names that contain the unknown one come before names with few differences`() {
        let known = ["certificate-expired", "certificate-expiring", "certificate-untrusted", "reset", "loss"]
        expectEqual(NearestKey.list("expiring", among: known), ["certificate-expiring"])
        expectEqual(
            NearestKey.list("certificate-expirin", among: known, count: 2), ["certificate-expiring", "certificate-expired"])
        expectEqual(NearestKey.list("los", among: known), ["loss"])
        expectEqual(NearestKey.list("", among: known), [])
    }

    @Test func `a limited number of keys is compared, and none whose length excludes it`() {
        let known = (0..<100_000).map { "g\($0)" }
        expectEqual(NearestKey.candidates(for: "g5000", among: known).count, NearestKey.candidateLimit)
        expectEqual(NearestKey.candidates(for: "g5", among: ["a long name of a group", "g"]), ["g"])
        expectEqual(NearestKey.find("g1x", among: known), "g1")
    }

    @Test(arguments: [("kitten", "sitting"), ("ab", "ba"), ("abcdef", "badcfe"), ("", "abc"), ("interval", "retention")])
    func `a distance beyond the limit is none`(first: String, second: String) throws {
        let distance = try #require(NearestKey.distance(first, second))
        expectEqual(NearestKey.distance(first, second, limit: distance), distance)
        expectNil(NearestKey.distance(first, second, limit: distance - 1))
    }
}
