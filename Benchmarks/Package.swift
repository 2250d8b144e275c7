// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "Benchmarks",
    dependencies: [.package(name: "netwatch", path: "..")],
    targets: [
        .executableTarget(
            name: "Benchmarks",
            dependencies: [.product(name: "Reachability", package: "netwatch")],
            swiftSettings: strict
        ),
        // What docs/compared.md says of URLSession on Linux, as programs.
        .executableTarget(
            name: "URLSessionClaims",
            dependencies: [.product(name: "HTTPSessionTestKit", package: "netwatch")],
            swiftSettings: strict
        ),
    ],
    swiftLanguageModes: [.v6]
)
