import HTTPSession
import HTTPSessionTestKit
import Reachability
import ReachabilityTestKit

/// The model of a view: the state of the network, and a user.
struct ViewModel {
    let monitor: PathMonitor
    let session: HTTPSessionManager

    var network: String {
        guard let path = monitor.current?.path else { return "unknown" }
        return path.cause.map { "unsatisfied, \($0.code.rawValue)" } ?? "satisfied, \(path.interface?.type.rawValue ?? "")"
    }

    func user() async throws -> User { try await session.get("users/7").decode() }
}

/// The examples of HTTPSessionTestKit's documentation.
struct HTTPSessionTestKitExamples {
    static func main(_ arguments: [String]) async throws {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        let transport = ScriptedTransport()
        transport.stub("/v1/users/7", with: StubResponse(503), StubResponse(body: #"{"name": "Ada"}"#))
        let session = try HTTPSessionManager(
            baseURL: "https://api.example.com/v1/", monitor: network.monitor, transport: transport)
        let model = ViewModel(monitor: network.monitor, session: session)

        print(model.network)
        print(try await model.user().name, transport.requests.count)
        network.publish(.unsatisfied(Cause(.link, .noCarrier, detail: "interface wlan0 has no carrier")))
        print(model.network)

        let task = session.get("users/7")
        await transport.waitUntilIdle()
        print(task.state)
        network.publish(.satisfied(over: .cellular()))
        print(try await task.response.statusCode)

        transport.stub(
            "/v1/users/7", with: .failing(.connectionRefused),
            StubResponse(body: .pattern(10_000)).cut(afterBodyBytes: 5_000, .reset),
            StubResponse(body: #"{"name": "Grace"}"#).delayed(.seconds(5)), .never)
        print(try await model.user().name, transport.elapsedTime > .seconds(5))
        do { _ = try await model.user() } catch { print(error, transport.elapsedTime > .seconds(65)) }
    }
}
