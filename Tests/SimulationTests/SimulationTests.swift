import Foundation
import Testing

@testable import Reachability

/// Seeded random inputs of all kinds for the complete machine, with 3,000 steps a seed, or a tenth of `NETWATCH_SIMULATION_STEPS`:
/// a step takes ten times as long as one of the other simulations, and keeps as much more memory.
/// `NETWATCH_SIMULATION_SEEDS=FIRST-LAST`, or a list with commas, runs other seeds. A failure names its seed.
@Suite struct SimulationTests {
    private static let steps = steps(otherwise: 30_000) / 10

    /// The number of steps of each seed.
    static func steps(otherwise count: Int) -> Int {
        ProcessInfo.processInfo.environment["NETWATCH_SIMULATION_STEPS"].flatMap { Int($0) } ?? count
    }

    static let seeds: [UInt64] = {
        guard let text = ProcessInfo.processInfo.environment["NETWATCH_SIMULATION_SEEDS"] else { return Array(0..<3) }
        return text.split(separator: ",").flatMap { part -> [UInt64] in
            let bounds = part.split(separator: "-").compactMap { UInt64($0) }
            return bounds.count == 2 && bounds[0] <= bounds[1] ? Array(bounds[0]...bounds[1]) : bounds
        }
    }()

    @Test(arguments: seeds) func `every step keeps the monitor's invariants, and when settled its snapshot equals the kernel`(
        seed: UInt64
    ) {
        var simulation = Simulation(seed: seed)
        do {
            try simulation.run(steps: Self.steps)
            // The run must have reached these states.
            #expect(simulation.settledPoints > Self.steps / 100, "seed \(seed)")
            #expect(simulation.narrowDumps > Self.steps / 200, "seed \(seed): \(simulation.narrowDumps)")
            // With one interface or one family there may never be a route.
            let isPicky = simulation.configuration != MonitorConfiguration()
            let satisfied = simulation.satisfied
            #expect(
                (satisfied > Self.steps / 1_000 || isPicky) && satisfied < simulation.settledPoints, "seed \(seed): \(satisfied)")
            #expect(simulation.emitted.count > Self.steps / 20, "seed \(seed): \(simulation.emitted.count)")
        } catch {
            Issue.record("seed \(seed), after \(simulation.recording.count) inputs: \(error)")
        }
    }
}
