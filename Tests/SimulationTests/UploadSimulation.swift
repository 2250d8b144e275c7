import Pacing

@testable import HTTPSession

/// Uploads by the machine alone, one after another, from processes that are killed. The server loses requests, refuses, restarts
/// and forgets. ``SimulatedUploadServer`` checks every request.
struct UploadSimulation {
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    private(set) var uploads = 0
    /// The number of uploads that ended with all bytes on the server.
    private(set) var complete = 0
    private(set) var kills = 0
    private var steps = 0
    private var dice: SplitMix64

    init(seed: UInt64) { dice = SplitMix64(seed: seed) }

    mutating func run(steps: Int) throws {
        while self.steps < steps { try upload() }
    }

    private mutating func upload() throws {
        let kind: UploadProtocol = Bool.random(using: &dice) ? .tus : .draft
        let limits: [Int64?] = [nil, 7, 64]
        let length = Int64.random(in: 0...100, using: &dice)
        var server = SimulatedUploadServer(kind, length: length, limit: limits.randomElement(using: &dice) ?? nil)
        let isIdempotent = Bool.random(using: &dice)
        func machine() -> UploadMachine {
            UploadMachine(kind.kind, length: length, isIdempotent: isIdempotent, allowsInsecure: false)
        }
        var present = machine()
        uploads += 1
        for step in 0..<400 {
            steps += 1
            // A server without further faults ends every upload.
            server.mayFail = step < 60
            let verdict = server.serve(&present, &dice)
            guard server.faults.isEmpty else { throw Violation(description: "\(server.faults), \(present)") }
            switch verdict {
            // Without a location, an upload whose second execution may do harm ends here.
            case nil: if !present.isRepeatable { return }
            case .next, .retry: break
            case let end?:
                if let objection = server.objection(to: present, end) { throw Violation(description: "\(objection), \(present)") }
                if server.isComplete { complete += 1 }
                return
            }
            if step < 60, Int.random(in: 0..<20, using: &dice) == 0 {
                // The next process knows the location only. Without one the upload restarts, or the task ends.
                kills += 1
                let location = present.location
                guard location != nil || kind == .tus || isIdempotent else { return }
                present = machine()
                if let location { present.resume(at: location) }
            }
        }
        throw Violation(description: "no end, \(present)")
    }
}
