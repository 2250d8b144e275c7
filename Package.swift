// swift-tools-version: 6.3
import PackageDescription

let package = Package(
    name: "netwatch",
    products: [
        .library(name: "Reachability", targets: ["Reachability"]),
        .library(name: "ReachabilityTestKit", targets: ["ReachabilityTestKit"]),
        .library(name: "ReachabilityCompatibility", targets: ["ReachabilityCompatibility"]),
        .library(name: "HTTPSession", targets: ["HTTPSession"]),
        .library(name: "HTTPSessionFoundation", targets: ["HTTPSessionFoundation"]),
        .library(name: "HTTPSessionCompatibility", targets: ["HTTPSessionCompatibility"]),
        .library(name: "HTTPSessionJournal", targets: ["HTTPSessionJournal"]),
        .library(name: "HTTPSessionTestKit", targets: ["HTTPSessionTestKit"]),
        .executable(name: "netwatch", targets: ["netwatch"]),
        .executable(name: "netwatch-transfer", targets: ["netwatch-transfer"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.3.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.90.0"),
    ],
    targets: [
        .systemLibrary(name: "CLinux"),
        .systemLibrary(
            name: "CLibnl",
            pkgConfig: "libnl-route-3.0",
            providers: [.apt(["libnl-3-dev", "libnl-route-3-dev", "pkg-config"])]
        ),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev", "pkg-config"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev", "pkg-config"])]),
        .systemLibrary(name: "CIdn2", pkgConfig: "libidn2", providers: [.apt(["libidn2-dev", "pkg-config"])]),
        .systemLibrary(name: "CAres", pkgConfig: "libcares", providers: [.apt(["libc-ares-dev", "pkg-config"])]),
        // The limit for connections without progress while libcurl reads them.
        .target(name: "CTLSReading", dependencies: ["COpenSSL"]),
        // The arguments and crash reports of the two programs. A library must not install signal handlers.
        .target(name: "CProcess"),
        .target(name: "EventLoop", dependencies: ["CLinux"]),
        // Keys that compare the bytes of strings, for both libraries and the programs.
        .target(name: "ByteComparison"),
        .target(name: "Pacing"),
        // HTTP/1.1 as text and bytes, for both libraries and the programs: one reader of responses, one date, one percent-encoding.
        .target(name: "Wire", dependencies: ["Pacing"]),
        // Certificates, keys, trust and TLS handshakes with OpenSSL, as Swift values.
        .target(name: "Certificates", dependencies: ["COpenSSL", "CTLSReading", "ByteComparison", "CLinux", "EventLoop"]),
        // International host names in ASCII, for both libraries.
        .target(name: "InternationalNames", dependencies: ["CIdn2"]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev", "pkg-config"])]),
        // Content without gzip and deflate.
        .target(name: "ContentCodings", dependencies: ["CZlib"]),
        // RE2 behind a header of C.
        .target(name: "CRE2", linkerSettings: [.linkedLibrary("re2")]),
        // Regular expressions that are searched in linear time.
        .target(name: "Expressions", dependencies: ["CRE2", "ByteComparison"]),
        .target(
            name: "Reachability",
            dependencies: [
                "ByteComparison", "CAres", "CLibnl", "CLinux", "Certificates", "ContentCodings", "EventLoop", "Expressions",
                "InternationalNames",
                "Pacing", "Wire",
            ]),
        // Scripted paths and servers, and replayed recordings, for tests of monitors.
        .target(name: "ReachabilityTestKit", dependencies: ["Reachability", "EventLoop"]),
        // Reachability with AFNetworking's names.
        .target(name: "ReachabilityCompatibility", dependencies: ["Reachability", "EventLoop"]),
        .target(
            name: "HTTPSession",
            dependencies: [
                "ByteComparison", "CCurl", "Certificates", "CLinux", "ContentCodings", "EventLoop", "InternationalNames",
                "Pacing",
                "Reachability", "Wire",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ]
        ),
        // The parts of a session that need all of Foundation. A separate product, so that other programs load neither ICU nor
        // libxml2.
        .target(
            name: "HTTPSessionFoundation",
            dependencies: ["HTTPSession", "EventLoop", .product(name: "HTTPTypes", package: "swift-http-types")]
        ),
        // Names of AFNetworking: callbacks for any task, and notifications.
        .target(name: "HTTPSessionCompatibility", dependencies: ["HTTPSession", "Reachability"]),
        // The check of a database file from elsewhere, for the journal and for the service.
        .target(
            name: "CheckedDatabase",
            dependencies: [
                "EventLoop", .product(name: "GRDB", package: "GRDB.swift"), .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ]),
        // Sessions that outlive their process. A separate product, so that other programs need no database.
        .target(
            name: "HTTPSessionJournal",
            dependencies: [
                "HTTPSession", "ByteComparison", "CheckedDatabase", "CLinux", "EventLoop",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        // A transport without a socket, and servers that misbehave, for the tests of this package and of its users.
        .target(
            name: "HTTPSessionTestKit",
            dependencies: ["HTTPSession", "Reachability", "Certificates", "CLinux", "COpenSSL", "CZlib", "EventLoop"]),
        // The console code that both programs share: streams, signals, arguments, durations, JSON.
        .target(
            name: "Console",
            dependencies: [
                "Reachability", "EventLoop", "Pacing", "CLinux", "CProcess", "Wire",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        // The records that docs/command-line.md describes, for `watch` and for the service: values to text and JSON, and the stream.
        .target(
            name: "Records",
            dependencies: [
                "Console", "Reachability", "EventLoop", "Pacing", "CLinux", "Wire",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        .executableTarget(
            name: "netwatch",
            dependencies: [
                "Records", "Console", "Reachability", "EventLoop", "Pacing", "CLinux", "Wire",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        // The program that `netwatch get` executes. A separate program, so that a monitor loads neither libcurl nor all of
        // Foundation.
        .executableTarget(
            name: "netwatch-transfer",
            dependencies: [
                "Console", "HTTPSession", "Reachability", "ByteComparison", "EventLoop", "Pacing", "CLinux", "Wire",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        // The program that `netwatch config` executes. It is in no product, so that packages that depend on this one do not
        // resolve its dependencies.
        .executableTarget(
            name: "netwatch-service",
            dependencies: [
                "ByteComparison", "Certificates", "CheckedDatabase", "CLinux", "Console", "EventLoop", "Pacing", "Reachability",
                "Records", "Wire",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "Yams", package: "Yams"),
            ],
            // The style sheet and the script of the page are parts of the program.
            resources: [.embedInCode("Pages/Assets")]
        ),

        // The examples of the documents, which the tests compile and run: one program, in no product, so that packages that depend on
        // this one do not build it.
        .executableTarget(
            name: "Examples",
            dependencies: [
                "Reachability", "ReachabilityTestKit", "HTTPSession", "HTTPSessionFoundation", "HTTPSessionCompatibility",
                "HTTPSessionJournal", "HTTPSessionTestKit",
            ],
            path: "Examples", exclude: ["README.md"]),

        // Comparisons that compile quickly, and conditions of tests; it contains no tests.
        .target(name: "Expectations", dependencies: ["NetworkLab"], path: "Tests/Expectations"),
        // Test hosts that are network namespaces; it contains no tests. The laboratory uses it too, in release builds, which have no Testing.
        .target(name: "NetworkLab", dependencies: ["CLinux", "EventLoop"], path: "Tests/NetworkLab"),
        // A proxy, an upload server and a silent name server, made of the parts of HTTPSessionTestKit; it contains no tests.
        .target(
            name: "TestServers",
            dependencies: ["HTTPSessionTestKit", "HTTPSession", "Reachability", "Certificates", "COpenSSL", "EventLoop"],
            path: "Tests/TestServers"),
        // Certificates with any fault, created in memory; it contains no tests.
        .target(name: "MemoryCertificates", dependencies: ["Certificates", "COpenSSL"], path: "Tests/MemoryCertificates"),
        // The faults whose verdicts are known, each in a network of its own; it contains no tests.
        .target(
            name: "FaultLaboratory", dependencies: ["NetworkLab", "EventLoop", "MemoryCertificates"],
            path: "Tests/FaultLaboratory"),
        // The programs that tests and scripts start: transfers during outages and kills (`make chaos`), the table of all faults and
        // verdicts (`make verdicts`), and a durable session to kill.
        .executableTarget(
            name: "laboratory",
            dependencies: [
                "FaultLaboratory", "HTTPSession", "HTTPSessionJournal", "HTTPSessionTestKit", "TestServers", "Reachability",
                "NetworkLab",
                "EventLoop",
                "Pacing", "Wire", .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            path: "Tests/Laboratory"),
        // A program that uses only a session, whose memory the tests measure.
        .executableTarget(name: "small-client", dependencies: ["HTTPSession"], path: "Tests/SmallClient"),
        // rtnetlink messages built byte by byte; it contains no tests.
        .target(name: "NetlinkBytes", dependencies: ["Reachability"], path: "Tests/NetlinkBytes"),
        // What both libraries stand on.
        .testTarget(
            name: "SupportTests",
            dependencies: [
                "ByteComparison", "Certificates", "COpenSSL", "CLinux", "CZlib", "ContentCodings", "EventLoop", "Expressions",
                "MemoryCertificates", "NetworkLab", "Pacing", "Reachability", "Wire",
            ]),
        .testTarget(name: "WireTests", dependencies: ["Wire", "Pacing"]),
        .testTarget(
            name: "ReachabilityTests",
            dependencies: [
                "Reachability", "ReachabilityTestKit", "ReachabilityCompatibility", "Certificates", "Expressions",
                "HTTPSessionTestKit", "NetlinkBytes", "Pacing", "EventLoop", "CLinux", "NetworkLab", "Wire",
            ]
        ),
        .testTarget(
            name: "HTTPSessionTests",
            dependencies: [
                "HTTPSession", "HTTPSessionFoundation", "HTTPSessionCompatibility", "HTTPSessionTestKit", "TestServers",
                "Certificates",
                "ContentCodings", "EventLoop", "InternationalNames", "MemoryCertificates",
                "Pacing", "NetworkLab",
                "CLinux", "COpenSSL", "CCurl", "Wire",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
            ]
        ),
        .testTarget(
            name: "HTTPSessionJournalTests",
            dependencies: [
                "HTTPSessionJournal", "HTTPSession", "HTTPSessionTestKit", "TestServers", "EventLoop", "Pacing", "NetworkLab",
                "CLinux",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ]
        ),
        .testTarget(
            name: "HTTPSessionTestKitTests",
            dependencies: [
                "HTTPSessionTestKit", "TestServers", "HTTPSession", "ReachabilityTestKit", "Reachability", "Certificates",
                "NetworkLab",
                "CLinux",
                "COpenSSL",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ]),
        // Sample values of a monitor; it contains no tests.
        .target(name: "RecordSamples", dependencies: ["Reachability", "Records"], path: "Tests/RecordSamples"),
        .testTarget(
            name: "RecordsTests",
            dependencies: [
                "Records", "RecordSamples", "Console", "Reachability", "EventLoop", "Pacing", "NetworkLab", "CLinux", "Wire",
            ]),
        .testTarget(
            name: "netwatchTests",
            dependencies: [
                "netwatch", "Records", "RecordSamples", "Console", "HTTPSessionTestKit", "TestServers", "Reachability",
                "EventLoop", "Pacing",
                "MemoryCertificates", "NetworkLab", "CLinux",
            ]
        ),
        .testTarget(
            name: "netwatch-transferTests",
            dependencies: [
                "netwatch-transfer", "netwatch", "Console", "HTTPSession", "HTTPSessionTestKit", "TestServers", "Reachability",
                "EventLoop",
                "Pacing", "NetworkLab", "CLinux",
            ]
        ),
        .testTarget(
            name: "netwatch-serviceTests",
            dependencies: [
                "netwatch-service", "netwatch", "Certificates", "Console", "EventLoop", "Reachability", "Records",
                "RecordSamples", "Pacing", "NetworkLab", "CLinux",
                .product(name: "GRDB", package: "GRDB.swift"),
            ]),
        .testTarget(
            name: "SimulationTests",
            dependencies: ["Reachability", "HTTPSession", "HTTPSessionJournal", "NetlinkBytes", "Pacing"]),
        // The drivers of `make fuzz`, which the suite runs with their corpora.
        .testTarget(
            name: "FuzzTests",
            dependencies: [
                "Reachability", "HTTPSession", "ByteComparison", "Certificates", "ContentCodings", "Expressions", "Pacing",
                "COpenSSL", "Wire",
            ],
            path: "Fuzz", exclude: ["Corpora", "Program", "new-seeds"]),
        // The service as a program: starts, kills and abuse.
        .testTarget(
            name: "ServiceTests",
            dependencies: ["MemoryCertificates", "NetworkLab", .product(name: "GRDB", package: "GRDB.swift")]),
        .testTarget(name: "FaultLaboratoryTests", dependencies: ["FaultLaboratory", "NetworkLab"]),
        .testTarget(
            name: "KernelTests",
            dependencies: [
                "Reachability", "ReachabilityCompatibility", "netwatch", "NetworkLab", "EventLoop", "Pacing", "CLinux",
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)

// The same strict settings for all targets. `treatAllWarnings` is not an unsafe flag, so the package stays usable as a
// dependency.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]
for target in package.targets where target.type != .system {
    target.swiftSettings = (target.swiftSettings ?? []) + strict
}

// Every test can compare values.
for target in package.targets where target.type == .test { target.dependencies.append("Expectations") }

// The targets of a build, with what they use: SwiftPM builds one product or all of them. `scripts/build` names programs, and a shard of
// `make verify` its tests.
if let names = Context.environment["NETWATCH_TARGETS"], !names.isEmpty {
    var used: Set<String> = []
    var added = names.split(separator: " ").map(String.init)
    while let name = added.popLast() {
        guard used.insert(name).inserted, let target = package.targets.first(where: { $0.name == name }) else { continue }
        for case .byNameItem(let dependency, _) in target.dependencies { added.append(dependency) }
    }
    package.targets.removeAll { !used.contains($0.name) }
    package.products = []
}
// The program of `make fuzz`, libFuzzer with all drivers, is built from the parsers and their dependencies alone, so that its build
// takes half a minute.
if Context.environment["SUITE_SANITIZER"] == "fuzzer" {
    let parsers: [String: [String]] = [
        "Reachability": [
            "Probe/DNSQuestion.swift", "Probe/DNSSockets.swift", "Probe/ErrorQueue.swift", "Names",
            "Interfaces", "Evidence", "Probes", "Kernel", "Status",
        ],
        "HTTPSession": [
            "HTTPTypes.swift", "Configuration/SystemDefaults.swift", "Curl/HeadAssembler.swift", "Transfer/ResponseFraming.swift",
            "Security/PublicKeyPin.swift", "Security/ContentDigest+Hasher.swift", "Upload/UploadLimit.swift", "Request", "Resume",
            "Retry", "Response", "Fields", "Messages", "Text", "Cookies/Cookie.swift", "Cookies/CookieDate.swift",
            "Cookies/CookieField.swift", "Cookies/CookieLimit.swift", "Cookies/CookieList.swift",
            "Cookies/CookieScope.swift", "Cookies/PublicSuffixList.swift", "Cookies/SetCookie.swift",
        ],
    ]
    let used: Set<String> = [
        "Reachability", "HTTPSession", "Certificates", "ContentCodings", "Expressions", "Pacing", "COpenSSL", "CRE2", "CZlib",
        "ByteComparison", "CAres", "CLibnl", "CLinux", "EventLoop", "InternationalNames", "CIdn2", "CTLSReading", "CCurl", "Wire",
    ]
    package.targets.removeAll { !used.contains($0.name) }
    for target in package.targets { target.sources = parsers[target.name] }
    package.products = []
    package.targets.append(
        .executableTarget(
            name: "fuzz",
            dependencies: [
                "Reachability", "HTTPSession", "ByteComparison", "Certificates", "ContentCodings", "Expressions", "Pacing",
                "COpenSSL", "Wire",
            ],
            path: "Fuzz", sources: ["Drivers", "Program"], swiftSettings: strict))
}
