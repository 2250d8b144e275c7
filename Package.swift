// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "netwatch",
    products: [
        .library(name: "Reachability", targets: ["Reachability"]),
        .executable(name: "netwatch", targets: ["netwatch"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0")
    ],
    targets: [
        .systemLibrary(name: "CLinux"),
        .systemLibrary(
            name: "CLibnl",
            pkgConfig: "libnl-route-3.0",
            providers: [.apt(["libnl-3-dev", "libnl-route-3-dev", "pkg-config"])]
        ),
        .target(name: "EventLoop", dependencies: ["CLinux"]),
        .target(name: "Pacing"),
        .target(name: "Reachability", dependencies: ["CLibnl", "CLinux", "EventLoop", "Pacing"]),
        .executableTarget(
            name: "netwatch",
            dependencies: [
                "Reachability", "EventLoop", "Pacing", "CLinux",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),

        // Test hosts made of network namespaces; no tests of its own.
        .target(name: "NetworkLab", dependencies: ["CLinux", "EventLoop"], path: "Tests/NetworkLab"),
        // rtnetlink messages laid out byte by byte; no tests of its own.
        .target(name: "NetlinkBytes", dependencies: ["Reachability"], path: "Tests/NetlinkBytes"),
        .testTarget(name: "EventLoopTests", dependencies: ["EventLoop", "CLinux"]),
        .testTarget(name: "PacingTests", dependencies: ["Pacing"]),
        .testTarget(
            name: "ReachabilityTests",
            dependencies: ["Reachability", "NetlinkBytes", "Pacing", "EventLoop", "CLinux", "NetworkLab"]
        ),
        .testTarget(name: "netwatchTests", dependencies: ["netwatch", "Reachability", "EventLoop", "NetworkLab", "CLinux"]),
        .testTarget(name: "SimulationTests", dependencies: ["Reachability", "NetlinkBytes", "Pacing"]),
        // The rules of the house that neither the compiler nor swift-format checks.
        .testTarget(name: "TidyTests"),
        .testTarget(
            name: "KernelTests",
            dependencies: ["Reachability", "netwatch", "NetworkLab", "EventLoop", "Pacing", "CLinux"]
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
