import FaultLaboratory
import Foundation
import NetworkLab

/// Makes each fault that many targets share, and prints whether it is one incident. The exit code is 1 if one is not.
///
/// `laboratory incidents [--parallel N] [--only TEXT]`
struct SharedFaults {
    static func main(_ arguments: [String]) async throws {
        var (parallel, only) = (2, "")
        var words = arguments[...]
        while let word = words.popFirst() {
            guard let value = words.popFirst() else { usage() }
            switch (word, Int(value)) {
            case ("--parallel", let number?) where number > 0: parallel = number
            case ("--only", _): only = value
            default: usage()
            }
        }
        if let reason = Lab.unavailableReason {
            FileHandle.standardError.write(Data("incidents: \(reason)\n".utf8))
            exit(77)
        }
        exit(try await run(IncidentFault.all.filter { only.isEmpty || $0.name.contains(only) }, parallel) ? 0 : 1)
    }

    private static func usage() -> Never {
        print("usage: laboratory incidents [--parallel NUMBER] [--only TEXT]")
        exit(64)
    }

    private static func run(_ faults: [IncidentFault], _ parallel: Int) async throws -> Bool {
        var (next, wrong) = (0, 0)
        try await withThrowingTaskGroup(of: (IncidentFault, String?).self) { group in
            func add() {
                guard next < faults.count else { return }
                let fault = faults[next]
                next += 1
                group.addTask { (fault, try await fault.problem()) }
            }
            for _ in 0..<parallel { add() }
            for try await (fault, problem) in group {
                print("\(fault.name): \(fault.subject), \(fault.cause): \(problem.map { "WRONG: \($0)" } ?? "one incident")")
                fflush(nil)
                if problem != nil { wrong += 1 }
                add()
            }
        }
        print("incidents: \(faults.count - wrong) of \(faults.count) faults are one incident")
        return wrong == 0 && !faults.isEmpty
    }
}
