import Foundation
import Glibc

/// The machine and the date to which the numbers belong.
enum Machine {
    static var description: String {
        let information = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
        let model =
            information.split(separator: "\n").first { $0.hasPrefix("model name") }
            .flatMap { $0.split(separator: ":").last }.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown processor"
        let hypervisor = information.contains(" hypervisor") ? ", virtual machine" : ""
        var name = utsname()
        uname(&name)
        let kernel = withUnsafeBytes(of: name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let memory = ProcessInfo.processInfo.physicalMemory >> 30
        let cores = ProcessInfo.processInfo.activeProcessorCount
        return "\(model), \(cores) cores\(hypervisor), \(memory) GiB, Linux \(kernel)"
    }

    static var date: String {
        let now = Calendar(identifier: .gregorian).dateComponents(in: .gmt, from: Date())
        let two = { (number: Int?) in String("0\(number ?? 0)".suffix(2)) }
        return "\(now.year ?? 0)-\(two(now.month))-\(two(now.day))"
    }
}
