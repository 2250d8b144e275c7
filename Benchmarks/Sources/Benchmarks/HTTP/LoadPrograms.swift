import Foundation
import Glibc
import Hosts

/// The programs that make requests, one for each client. scripts/bench builds them.
struct LoadPrograms {
    let multi: String
    let session: String
    let asyncHTTPClient: String
    let urlSession: String
    let linkConnect: String
    /// The program with the static Swift library. It executes netwatch-transfer beside it.
    let netwatch: String
    /// ``session`` with the static Swift library.
    let staticSession: String

    init() throws {
        let environment = ProcessInfo.processInfo.environment
        let limits = environment["LIMITS"] ?? ".build/limits"
        let products = environment["PRODUCTS"] ?? "Benchmarks/.build/release"
        multi = "\(limits)/http-multi"
        session = "\(products)/HTTPSessionLoad"
        asyncHTTPClient = "\(products)/AsyncHTTPClientLoad"
        urlSession = "\(products)/URLSessionLoad"
        linkConnect = "\(limits)/link-connect"
        let linkedStatically = environment["STATIC_PRODUCTS"] ?? "Benchmarks/.build-static/release"
        netwatch = "\(linkedStatically)/netwatch"
        staticSession = "\(linkedStatically)/HTTPSessionLoad"
        let all = [
            multi, session, asyncHTTPClient, urlSession, linkConnect, netwatch, staticSession,
            "\(linkedStatically)/netwatch-transfer",
        ]
        for program in all where access(program, X_OK) != 0 {
            throw BenchmarkError("\(program) is missing: run scripts/bench http, which builds it")
        }
    }
}

/// The numbers that a program printed in one run.
struct LoadRun {
    let numbers: [Double]

    init(_ command: [String], count: Int) throws {
        let child = try Child(command, output: .lines)
        let code = child.wait()
        numbers = child.output.last?.text.split(separator: " ").compactMap { Double($0) } ?? []
        guard code == 0, numbers.count == count else {
            throw BenchmarkError("\(command.joined(separator: " ")): exit code \(code), \(numbers.count) numbers for \(count)")
        }
    }
}

/// Several runs of a program that makes `requests` requests of 1 KiB.
struct RequestRuns {
    private let command: [String]
    private let requests: Int
    private(set) var rates: [Double] = []
    private(set) var costs: [Double] = []
    private(set) var besides: [Double] = []

    /// Makes runs of `program` with its URL, the number of requests, how many at a time, and further arguments.
    init(_ program: String, _ url: String, _ requests: Int, atOnce: Int = 64, _ further: String...) {
        command = [program, url, "\(requests)", "\(atOnce)"] + further
        self.requests = requests
    }

    /// Runs the program once. - Throws: if a byte or a number is missing, since an incomplete load gives no result.
    mutating func run(numbers count: Int) throws {
        let run = try LoadRun(command, count: count)
        guard run.numbers[2] == Double(requests * 1024) else { throw BenchmarkError("\(command[0]): \(run.numbers[2]) bytes") }
        rates.append(run.numbers[0])
        costs.append(run.numbers[1] * 1e9 / Double(requests))
        if count == 5 { besides.append(run.numbers[4] - run.numbers[3]) }
    }

    var rate: Double { Distribution(rates).median }
    /// The processor time of a request, in nanoseconds.
    var cost: Double { Distribution(costs).median }
    /// The resident KiB of all transfers beside the requests.
    var beside: Double { Distribution(besides).median }
}
