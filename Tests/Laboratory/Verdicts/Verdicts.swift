import Dispatch
import EventLoop
import FaultLaboratory
import Foundation
import NetworkLab

/// Makes every fault of the laboratory and prints a table: the fault, the expected verdict, the program's verdict, the seconds
/// from the fault to it, and the answers of other programs. The exit code is 1 if a verdict is wrong.
///
/// `laboratory verdicts [--parallel N] [--only TEXT] [--untimed]`
struct Verdicts {
    private var parallel = 4
    private var only = ""
    /// Whether a late verdict is no fault, and no other program is asked, and the rows of a thousand targets are left out: while the processors
    /// compile.
    private var isUntimed = false

    static func main(_ arguments: [String]) async throws {
        var verdicts = Verdicts()
        var words = arguments[...]
        while let word = words.popFirst() {
            if word == "--untimed" {
                verdicts.isUntimed = true
                continue
            }
            guard let value = words.popFirst() else { usage() }
            switch (word, Int(value)) {
            case ("--parallel", let number?) where number > 0: verdicts.parallel = number
            case ("--only", _): verdicts.only = value
            default: usage()
            }
        }
        if let reason = Lab.unavailableReason {
            FileHandle.standardError.write(Data("verdicts: \(reason)\n".utf8))
            exit(77)
        }
        exit(try await verdicts.run() ? 0 : 1)
    }

    private static func usage() -> Never {
        print("usage: laboratory verdicts [--parallel NUMBER] [--only TEXT] [--untimed]")
        exit(64)
    }

    private struct Row: Sendable {
        var fault: Fault
        var outcome: FaultOutcome
        var others: [String]
    }

    private func run() async throws -> Bool {
        let faults = (Fault.all + (isUntimed && only.isEmpty ? [] : Fault.large)).filter {
            only.isEmpty || $0.name.contains(only)
        }
        var rows: [Int: Row] = [:]
        var next = 0
        let threads = BlockingThreads()
        try await withThrowingTaskGroup(of: (Int, Row).self) { group in
            func addTask() {
                guard next < faults.count else { return }
                let (number, fault) = (next, faults[next])
                next += 1
                group.addTask(executorPreference: threads) { (number, await row(fault)) }
            }
            for _ in 0..<parallel { addTask() }
            // Rows are printed in the order of the table, each as soon as those before it are known.
            var printed = 0
            print(Self.line(["fault", "expected", "ours", "seconds"] + OtherTools.names))
            for try await (number, row) in group {
                rows[number] = row
                addTask()
                while let row = rows[printed] {
                    show(row)
                    printed += 1
                }
            }
        }
        let wrong = rows.values.count { fault(in: $0) != nil }
        print("verdicts: \(rows.count - wrong) of \(rows.count) rows are right")
        for line in OtherTools.missing { print("verdicts: \(line)") }
        return wrong == 0 && !rows.isEmpty
    }

    private func fault(in row: Row) -> String? { row.outcome.problem ?? (isUntimed ? nil : row.outcome.lateness) }

    private func row(_ fault: Fault) async -> Row {
        let others = Locked<[String]>([])
        do {
            let outcome = try await fault.outcome(attempts: isUntimed ? 1 : 3) { [isUntimed] network in
                if isUntimed { return }
                let tools = try OtherTools.ask(network, fault)
                others.withLock { $0 = tools.answers }
            }
            return Row(fault: fault, outcome: outcome, others: others.withLock { $0 })
        } catch {
            return Row(fault: fault, outcome: .failed("\(error)"), others: [])
        }
    }

    private func show(_ row: Row) {
        let seconds = row.outcome.seconds.map { String(format: "%.3f", $0) } ?? "-"
        print(Self.line([row.fault.name, row.fault.expected.description, row.outcome.verdict, seconds] + row.others))
        if !row.outcome.explanation.isEmpty { print("    why: \(row.outcome.explanation)") }
        if let problem = fault(in: row) { print("    WRONG: \(row.fault.name): \(problem)") }
        fflush(nil)
    }

    private static let widths = [46, 76, 76, 7, 36, 24]

    private static func line(_ cells: [String]) -> String {
        zip(cells, widths + [0]).map { cell, width in
            cell.count < width ? cell + String(repeating: " ", count: width - cell.count) : cell
        }.joined(separator: "  ")
    }
}

/// Runs tasks that block their thread while they wait for programs: the shared pool has only as many threads as there are processors.
private final class BlockingThreads: TaskExecutor {
    private let queue = DispatchQueue(label: "laboratory", attributes: .concurrent)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
