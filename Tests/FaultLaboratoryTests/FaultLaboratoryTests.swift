import Expectations
import FaultLaboratory
import Foundation
import NetworkLab
import Testing

/// Every fault of the laboratory has the verdict that it requires, as the built program sees it without privilege. How soon the verdict comes is
/// measured by `make verdicts`, without other tests beside it, and tested by the state machines.
@Suite(.requiresNamespaces, .skippedUnderSanitizers)
struct FaultLaboratoryTests {
    // The longest rows are the last ones of the table, and begin first.
    @Test(arguments: Fault.all.filter { !$0.needsTun }.reversed() as [Fault])
    func `a fault has its verdict with its evidence`(fault: Fault) async throws {
        try await expectVerdict(of: fault)
    }

    @Test(.requiresTun, arguments: Fault.all.filter(\.needsTun))
    func `a fault of a tunnel has its verdict with its evidence`(fault: Fault) async throws {
        try await expectVerdict(of: fault)
    }

    private func expectVerdict(of fault: Fault) async throws {
        let outcome = try await fault.outcome(attempts: 1)
        expectNil(outcome.problem, "\(fault.name): expected \(fault.expected), got \(outcome.verdict)")
        if let lateness = outcome.lateness { print("\(fault.name): \(lateness)") }
    }
}

/// A fault that many targets share is one incident: its subject, its cause, and nothing beside it.
@Suite(.requiresNamespaces, .skippedUnderSanitizers)
struct IncidentFaultTests {
    @Test(arguments: IncidentFault.all.filter { !$0.needsTun })
    func `a fault of 50 targets is one incident`(fault: IncidentFault) async throws {
        expectNil(try await fault.problem(), "\(fault)")
    }

    @Test(.requiresTun, arguments: IncidentFault.all.filter(\.needsTun))
    func `a fault of a tunnel is one incident`(fault: IncidentFault) async throws {
        expectNil(try await fault.problem(), "\(fault)")
    }
}

/// The documents and the rows of the laboratory agree.
@Suite struct FaultTableTests {
    @Test func `docs/verdicts.md has the rows of TLS and HTTP with their verdicts, in their order`() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../../docs/verdicts.md")
        let text = try String(contentsOf: file.standardized, encoding: .utf8)
        let rows = (Fault.tlsFaults + Fault.httpFaults).map { fault in
            let verdicts = fault.expected.lines.map { "`\($0)`" } + (fault.workingTargets.isEmpty ? [] : ["tcp: `up`"])
            return "| \(fault.name) | \(verdicts.joined(separator: "; ")) |"
        }
        let table = (["| fault | verdict |", "|---|---|"] + rows).joined(separator: "\n")
        #expect(text.contains(table), "the table must be:\n\(table)")
    }
}
