import Expectations
import Foundation
import Testing

@testable import Reachability

@Suite struct LossSimulationTests {
    /// The number of runs. `LOSS_RUNS=10000` is the complete measurement.
    private static let runs = ProcessInfo.processInfo.environment["LOSS_RUNS"].flatMap { UInt64($0) } ?? 60

    @Test func `a loss of 20 % in both directions for five minutes brings no target down`() throws {
        var (downs, probes, failed): ([UInt64], Int, Int) = ([], 0, 0)
        for seed in 1...Self.runs {
            var simulation = try LossSimulation(
                seed: seed, lossPercent: 20, ProbeSettings(interval: .seconds(1), timeout: .seconds(3)))
            simulation.run(seconds: 300)
            if simulation.states.contains(.down) || simulation.states.contains(.unreachable) { downs.append(seed) }
            #expect(simulation.states.contains(.degraded), "seed \(seed): the loss is noticed")
            probes += simulation.probes
            failed += simulation.failedProbes
        }
        print("\(Self.runs) runs, \(probes) probes, \(failed) failed, seeds of runs with a false outage: \(downs)")
        #expect(probes > 200 * Int(Self.runs))
        #expect(downs.count <= max(1, Int(Self.runs) / 1_000), "seeds \(downs)")
    }

    @Test func `without loss no probe fails, and a complete loss brings the target down or makes it unreachable`() throws {
        let settings = ProbeSettings(interval: .seconds(1), timeout: .seconds(3))
        var lossless = try LossSimulation(seed: 1, lossPercent: 0, settings)
        lossless.run(seconds: 60)
        #expect(lossless.states == [.unknown, .up] && lossless.failedProbes == 0 && (59...61).contains(lossless.probes))
        var dead = try LossSimulation(seed: 1, lossPercent: 100, settings)
        dead.run(seconds: 60)
        expectEqual(dead.states, [.unknown, .unreachable])
    }
}
