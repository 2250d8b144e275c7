import Expectations
import Reachability
import Testing

@testable import netwatch_service

@Suite struct ConfigurationLayerTests {
    @Test func `files of one layer merge maps and append lists`() throws {
        let layer = try merge(
            "classes: {a: {interval: 1s}}\ntargets: [\"x:1\"]", "classes: {b: {interval: 2s}}\ntargets: [\"y:1\"]")
        expectEqual(layer.problems, [])
        var reader = ConfigurationReader()
        let configuration = Configuration(layer.tree, &reader)
        expectEqual(configuration.classes.keys.sorted(), ["a", "b"])
        expectEqual(configuration.targets.map(\.key), ["x:1", "y:1"])
    }

    @Test func `a scalar that two files of a layer set is an error that names both places`() throws {
        try expectEqual(
            merge("retention:\n  size: 1GiB", "retention: {size: 2GiB}").problems,
            ["1.yaml:1:19: 'retention.size' is already set at 0.yaml:2:9"])
    }

    @Test func `different kinds of a value in one layer are an error`() throws {
        try expectEqual(
            merge("retention: {size: 1GiB}", "retention: 5").problems,
            ["1.yaml:1:12: 'retention' is a single value here, and a map of keys at 0.yaml:1:12"])
    }

    @Test func `a higher layer replaces scalars and lists, and merges maps`() throws {
        let lower = try YAML.tree("interval: 1s\nretention: {size: 1GiB, samples: 3d}\ntargets: [\"a:1\", \"b:1\"]")
        let higher = try YAML.tree("interval: 2s\nretention: {size: 2GiB}\ntargets: [\"c:1\"]")
        var reader = ConfigurationReader()
        let configuration = Configuration(ConfigurationLayer.override(lower, by: higher), &reader)
        expectEqual(configuration.probes.interval, .seconds(2))
        expectEqual(configuration.retention, Retention(size: 2 << 30, samples: 3))
        expectEqual(configuration.targets.map(\.key), ["c:1"])
    }

    @Test func `an empty value of a higher layer replaces nothing`() throws {
        let tree = ConfigurationLayer.override(try YAML.tree("interval: 1s"), by: try YAML.tree("interval:"))
        expectEqual(tree, (try YAML.tree("interval: 1s")))
    }

    @Test func `targets of the command line are added to those of the layers`() throws {
        let argument = ConfigurationNode(.scalar("b:1"), .argument("TARGET"))
        var reader = ConfigurationReader()
        let tree = ConfigurationLayer.add([argument], to: "targets", of: try YAML.tree("targets: [\"a:1\"]"))
        expectEqual(Configuration(tree, &reader).targets.map(\.key), ["a:1", "b:1"])
    }

    @Test func `targets of the command line are added to a single target, and to none`() throws {
        let argument = ConfigurationNode(.scalar("b:1"), .argument("TARGET"))
        for (text, keys) in [("targets: \"a:1\"", ["a:1", "b:1"]), ("targets:", ["b:1"]), ("", ["b:1"])] {
            var reader = ConfigurationReader()
            let tree = ConfigurationLayer.add([argument], to: "targets", of: try YAML.tree(text))
            expectEqual(Configuration(tree, &reader).targets.map(\.key), keys)
        }
    }

    private func merge(_ files: String...) throws -> (tree: ConfigurationNode?, problems: [String]) {
        var problems: [ConfigurationProblem] = []
        let nodes = try files.enumerated().map { try YAML.tree($1, file: "\($0).yaml") }
        return (ConfigurationLayer.merge(nodes, problems: &problems), problems.map(\.description))
    }
}
