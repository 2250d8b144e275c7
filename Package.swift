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
        // The limit of connections that bring nothing while libcurl reads them.
        .target(name: "CTLSReading", dependencies: ["COpenSSL"]),
        // Arguments and crashes of a program, for the two programs alone: a library leaves signal handlers to its user.
        .target(name: "CProcess"),
        .target(name: "EventLoop", dependencies: ["CLinux"]),
        .target(name: "Pacing"),
        // Certificates, keys, trust and handshakes in OpenSSL's hands, as values.
        .target(name: "Certificates", dependencies: ["COpenSSL", "CTLSReading", "CLinux", "EventLoop"]),
        .target(name: "Reachability", dependencies: ["CLibnl", "CLinux", "EventLoop", "Pacing"]),
        // Paths, servers and recordings that a test plays to monitors.
        .target(name: "ReachabilityTestKit", dependencies: ["Reachability", "EventLoop"]),
        // Reachability by the names of AFNetworking.
        .target(name: "ReachabilityCompatibility", dependencies: ["Reachability", "EventLoop"]),
        .target(
            name: "HTTPSession",
            dependencies: [
                "CCurl", "Certificates", "CIdn2", "CLinux", "EventLoop", "Pacing", "Reachability",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ]
        ),
        // What of a session speaks all of Foundation: apart, so that whoever needs none of it has neither ICU nor libxml2 in memory.
        .target(
            name: "HTTPSessionFoundation",
            dependencies: ["HTTPSession", "EventLoop", .product(name: "HTTPTypes", package: "swift-http-types")]
        ),
        // Sessions that outlive their process: apart, so that whoever needs none carries no database.
        .target(
            name: "HTTPSessionJournal",
            dependencies: [
                "HTTPSession", "CLinux", "EventLoop",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        // A server that misbehaves as told, for the tests of this package and of its users.
        .target(name: "HTTPSessionTestKit", dependencies: ["Certificates", "CLinux", "COpenSSL", "EventLoop"]),
        // What a program says and hears, shared by the two: streams, signals, arguments, durations, JSON.
        .target(
            name: "Console",
            dependencies: [
                "Reachability", "EventLoop", "Pacing", "CLinux", "CProcess",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        .executableTarget(
            name: "netwatch",
            dependencies: [
                "Console", "Reachability", "EventLoop", "Pacing", "CLinux",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        // What `netwatch get` becomes: apart, so that a monitor has neither libcurl nor all of Foundation in memory.
        .executableTarget(
            name: "netwatch-transfer",
            dependencies: [
                "Console", "HTTPSession", "Reachability", "EventLoop", "Pacing", "CLinux",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ]
        ),

        // What the documents show, compiled and run by the tests; in no product, so that nobody builds them who depends on this package.
        .executableTarget(name: "ReachabilityExamples", dependencies: ["Reachability"], path: "Examples/Reachability"),
        .executableTarget(
            name: "ReachabilityTestKitExamples", dependencies: ["Reachability", "ReachabilityTestKit"],
            path: "Examples/ReachabilityTestKit"),
        .executableTarget(
            name: "HTTPSessionExamples", dependencies: ["HTTPSession", "Reachability"], path: "Examples/HTTPSession"),
        .executableTarget(
            name: "HTTPSessionFoundationExamples", dependencies: ["HTTPSession", "HTTPSessionFoundation"],
            path: "Examples/HTTPSessionFoundation"),
        .executableTarget(
            name: "HTTPSessionJournalExamples", dependencies: ["HTTPSession", "HTTPSessionJournal"],
            path: "Examples/HTTPSessionJournal"),

        // Test hosts made of network namespaces; no tests of its own.
        .target(name: "NetworkLab", dependencies: ["CLinux", "EventLoop"], path: "Tests/NetworkLab"),
        // Transfers through outages, kills and faults: `make chaos`, and a short form among the tests.
        .executableTarget(
            name: "chaos",
            dependencies: [
                "HTTPSession", "HTTPSessionJournal", "HTTPSessionTestKit", "Reachability", "NetworkLab", "EventLoop", "Pacing",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            path: "Tests/Chaos"),
        // A program with a durable session, for the tests to kill.
        .executableTarget(
            name: "durable-client",
            dependencies: ["HTTPSession", "HTTPSessionJournal", .product(name: "HTTPTypes", package: "swift-http-types")],
            path: "Tests/DurableClient"),
        // A program that needs a session and nothing else: what that costs, for the tests to see.
        .executableTarget(name: "small-client", dependencies: ["HTTPSession"], path: "Tests/SmallClient"),
        // rtnetlink messages laid out byte by byte; no tests of its own.
        .target(name: "NetlinkBytes", dependencies: ["Reachability"], path: "Tests/NetlinkBytes"),
        .testTarget(name: "EventLoopTests", dependencies: ["EventLoop", "CLinux"]),
        .testTarget(name: "PacingTests", dependencies: ["Pacing"]),
        .testTarget(
            name: "ReachabilityTests",
            dependencies: [
                "Reachability", "ReachabilityTestKit", "ReachabilityCompatibility", "NetlinkBytes", "Pacing", "EventLoop",
                "CLinux", "NetworkLab",
            ]
        ),
        .testTarget(
            name: "HTTPSessionTests",
            dependencies: [
                "HTTPSession", "HTTPSessionFoundation", "HTTPSessionTestKit", "Certificates", "EventLoop", "Pacing", "NetworkLab",
                "CLinux", "COpenSSL", "CCurl",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
            ]
        ),
        .testTarget(
            name: "HTTPSessionJournalTests",
            dependencies: [
                "HTTPSessionJournal", "HTTPSession", "HTTPSessionTestKit", "EventLoop", "Pacing", "NetworkLab", "CLinux",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ]
        ),
        .testTarget(
            name: "HTTPSessionTestKitTests",
            dependencies: ["HTTPSessionTestKit", "Certificates", "NetworkLab", "CLinux", "COpenSSL"]),
        .testTarget(
            name: "netwatchTests",
            dependencies: ["netwatch", "Console", "Reachability", "EventLoop", "Pacing", "NetworkLab", "CLinux"]
        ),
        .testTarget(
            name: "netwatch-transferTests",
            dependencies: [
                "netwatch-transfer", "netwatch", "Console", "HTTPSession", "HTTPSessionTestKit", "Reachability", "EventLoop",
                "Pacing", "NetworkLab", "CLinux",
            ]
        ),
        .testTarget(
            name: "SimulationTests",
            dependencies: ["Reachability", "HTTPSession", "HTTPSessionJournal", "NetlinkBytes", "Pacing"]),
        // The rules of the house that neither the compiler nor swift-format checks.
        .testTarget(name: "TidyTests"),
        .testTarget(
            name: "KernelTests",
            dependencies: [
                "Reachability", "ReachabilityCompatibility", "netwatch", "NetworkLab", "EventLoop", "Pacing", "CLinux",
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)

// The same strictness everywhere. `treatAllWarnings` is a safe setting, so that the package stays usable as a dependency.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]
for target in package.targets where target.type != .system {
    target.swiftSettings = (target.swiftSettings ?? []) + strict
}

// A sanitizer is for threads and for unsafe code. Rules and pure code on one thread have been checked without.
if Context.environment["SUITE_SANITIZER"] != nil {
    package.targets.removeAll { ["TidyTests", "SimulationTests", "PacingTests"].contains($0.name) }
}
