import Testing

/// Seeded random downloads, with 20,000 steps a seed or `NETWATCH_SIMULATION_STEPS`. `NETWATCH_SIMULATION_SEEDS=FIRST-LAST`, or a
/// list with commas, runs other seeds. A failure names its seed.
@Suite struct TaskSimulationTests {
    private static let steps = SimulationTests.steps(otherwise: 20_000)

    @Test(arguments: SimulationTests.seeds)
    func `downloads make no forbidden attempt, join no bytes of two versions, and all end`(seed: UInt64) {
        var simulation = TaskSimulation(seed: seed)
        do {
            try simulation.run(steps: Self.steps)
            // Some downloads must succeed and some must fail.
            #expect(simulation.good > Self.steps / 2_000, "seed \(seed): \(simulation.good)")
            #expect(simulation.finished > simulation.good, "seed \(seed)")
            #expect(simulation.resumedBytes > 0, "seed \(seed)")
        } catch {
            Issue.record("seed \(seed), \(simulation.now) ns, after \(simulation.finished) tasks: \(error)")
        }
    }
}
