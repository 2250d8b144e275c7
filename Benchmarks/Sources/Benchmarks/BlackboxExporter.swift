import Foundation
import Glibc
import Hosts

/// A prometheus-blackbox-exporter on a host. It probes when it is asked over HTTP. It ends with this object.
final class BlackboxExporter {
    static let name = "prometheus-blackbox-exporter"

    /// Whether the program is installed.
    static var isInstalled: Bool {
        let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
        return folders.contains { access("\($0)/\(name)", X_OK) == 0 }
    }

    /// The line of a measurement without the program.
    static func missing(_ what: String, _ measured: String) -> Row {
        Row(what: what, measured: measured, limit: "\(name): not installed", ratio: nil, asked: nil, holds: nil)
    }

    private let host: LabHost
    private let child: Child

    /// Starts the program with the modules of a configuration, which is written to a file in `folder`.
    init(in host: LabHost, _ folder: URL, modules: String) throws {
        self.host = host
        let configuration = folder.appendingPathComponent("blackbox.yml")
        try Data("modules:\n\(modules)".utf8).write(to: configuration)
        child = try Child(
            [Self.name, "--config.file=\(configuration.path)", "--web.listen-address=127.0.0.1:9115", "--log.level=error"],
            in: host)
        usleep(2_000_000)
    }

    deinit { child.stop() }

    /// The cost of probes.
    struct Cost {
        /// The processor time of one probe, in nanoseconds.
        let processorTime: Double
        /// The number of probes a second.
        let rate: Double
    }

    /// Probes targets, which curl(1) lists by a pattern, with as many at a time as `parallel`. Every probe must succeed.
    func probe(_ pattern: String, count: Int, module: String, parallel: Int = 1) throws -> Cost {
        let figures = ProcessFigures(processID: child.processID)
        let (before, start) = (figures.processorTime, Clock.now())
        let url = "http://127.0.0.1:9115/probe?module=\(module)&target=\(pattern)"
        let order = parallel > 1 ? ["--parallel", "--parallel-max", "\(parallel)"] : []
        let curl = try Child(["curl", "--silent", "--no-progress-meter", "--fail"] + order + [url], in: host, output: .lines)
        curl.wait()
        let (time, end) = (figures.processorTime - before, Clock.now())
        let succeeded = curl.output.count { $0.text == "probe_success 1" }
        guard succeeded == count else { throw BenchmarkError("\(Self.name): \(succeeded) of \(count) probes succeed") }
        return Cost(processorTime: Double(time) / Double(count), rate: Double(count) / Double(end - start) * 1e9)
    }
}
