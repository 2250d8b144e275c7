import FaultLaboratory
import NetworkLab
import Testing

/// Every fault of the laboratory has the verdict that it requires, as the built program sees it without privilege.
@Suite(.requiresNamespaces, .skippedUnderSanitizers)
struct FaultLaboratoryTests {
    // The longest rows are the last ones of the table, and begin first.
    @Test(arguments: Fault.all.filter { !$0.needsTun }.reversed() as [Fault])
    func `a fault has its verdict, in time and with its evidence`(fault: Fault) async throws {
        try await expectVerdict(of: fault)
    }

    @Test(.requiresTun, arguments: Fault.all.filter(\.needsTun))
    func `a fault of a tunnel has its verdict, in time and with its evidence`(fault: Fault) async throws {
        try await expectVerdict(of: fault)
    }

    private func expectVerdict(of fault: Fault) async throws {
        let outcome = try await fault.outcome()
        #expect(outcome.problem == nil, "\(fault.name): expected \(fault.expected), got \(outcome.verdict)")
    }
}
