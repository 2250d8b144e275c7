import FaultLaboratory
import NetworkLab
import Testing

/// Every fault of the laboratory has the verdict that it requires, as the built program sees it without privilege.
@Suite(.requiresNamespaces, .requiresTun, .skippedUnderSanitizers)
struct FaultLaboratoryTests {
    // The longest rows are the last ones of the table.
    @Test(arguments: Fault.all.reversed() as [Fault]) func `a fault has its verdict, in time and with its evidence`(fault: Fault)
        async throws
    {
        let outcome = try await fault.outcome()
        #expect(outcome.problem == nil, "\(fault.name): expected \(fault.expected), got \(outcome.verdict)")
    }
}
