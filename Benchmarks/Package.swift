// swift-tools-version: 6.3
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "Benchmarks",
    dependencies: [
        .package(name: "netwatch", path: ".."),
        // Measured beside HTTPSession. Only AsyncHTTPClientLoad and AsyncHTTPClientDownload build them.
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.30.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.81.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.29.0"),
    ],
    targets: [
        // Hosts made of network namespaces, and programs that run in them.
        .target(name: "Hosts", swiftSettings: strict),
        .executableTarget(
            name: "Benchmarks",
            dependencies: ["Hosts", .product(name: "Reachability", package: "netwatch")],
            swiftSettings: strict
        ),
        // Many requests by each of the HTTP clients, with a program for each. They share their arguments and their output.
        .target(name: "RequestLoad", swiftSettings: strict),
        .executableTarget(
            name: "HTTPSessionLoad",
            dependencies: [
                "RequestLoad", .product(name: "HTTPSession", package: "netwatch"),
                .product(name: "Reachability", package: "netwatch"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "AsyncHTTPClientLoad",
            dependencies: [
                "RequestLoad", .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: strict
        ),
        // HTTPSession's JSON parser beside Foundation's.
        .executableTarget(
            name: "JSONComparison", dependencies: [.product(name: "HTTPSession", package: "netwatch")], swiftSettings: strict),
        .executableTarget(name: "URLSessionLoad", dependencies: ["RequestLoad"], swiftSettings: strict),
        // The claims of docs/compared.md about URLSession on Linux, as programs.
        .executableTarget(
            name: "URLSessionClaims",
            dependencies: [.product(name: "HTTPSessionTestKit", package: "netwatch")],
            swiftSettings: strict
        ),
        // Downloads that meet faults, by this package's program and by others, for the table of docs/compared.md.
        .executableTarget(
            name: "FaultComparison",
            dependencies: [
                "Hosts", .product(name: "HTTPSessionTestKit", package: "netwatch"),
                .product(name: "Reachability", package: "netwatch"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(name: "URLSessionDownload", swiftSettings: strict),
        .executableTarget(
            name: "AsyncHTTPClientDownload",
            dependencies: [
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6]
)
