import Expectations
import Testing

@testable import netwatch_service

@Suite struct TurnOrderTests {
    /// Returns the jobs in their order. A job that has a number of pieces is put back after each.
    private func order(_ jobs: [(share: String, job: String, pieces: Int)]) -> [String] {
        var order = TurnOrder<String, (name: String, pieces: Int)>()
        for job in jobs { order.add((job.job, job.pieces), of: job.share) }
        var done: [String] = []
        while let job = order.next() {
            done.append(job.name)
            if job.pieces > 1 { order.putBack((job.name, job.pieces - 1)) }
        }
        return done
    }

    @Test func `a connection with many documents does not delay the one of another`() {
        let many = (1...4).map { (share: "a", job: "a\($0)", pieces: 1) }
        expectEqual(order(many + [("b", "b1", 1)]), ["a1", "b1", "a2", "a3", "a4"])
    }

    @Test func `the pieces of a large document alternate with those of others`() {
        expectEqual(order([("a", "a", 4), ("b", "b", 2), ("c", "c", 1)]), ["a", "a", "b", "a", "c", "b", "a"])
    }

    @Test func `connections of one user of the socket share one turn`() {
        let user = (1...3).map { (share: "user 1000", job: "u\($0)", pieces: 2) }
        expectEqual(order(user + [("a", "a", 3)]), ["u1", "u1", "a", "a", "u2", "a", "u3", "u2", "u3"])
    }

    @Test func `few documents are begun at a time, and each is finished`() {
        let jobs = (0..<100).map { (share: "\($0)", job: "\($0)", pieces: 9) }
        var remaining: [String: Int] = [:]
        for job in order(jobs) {
            remaining[job, default: 9] -= 1
            #expect(remaining.values.filter { $0 > 0 }.count <= 4)
        }
        expectEqual(remaining.values.filter { $0 == 0 }.count, 100)
    }

    @Test func `small documents do not keep a begun one from its end`() {
        let small = (0..<100).map { (share: "s\($0)", job: "small", pieces: 1) }
        let done = order([("a", "large", 5)] + small)
        expectEqual(done.lastIndex(of: "large"), 7)
    }

    @Test func `the order of a thousand connections stays fair`() {
        var order = TurnOrder<Int, [Int]>()
        for turn in 0..<3 { for share in 0..<1_000 { order.add([share, turn], of: share) } }
        for turn in 0..<3 { for share in 0..<1_000 { expectEqual(order.next(), [share, turn]) } }
        expectNil(order.next())
    }
}
