import Foundation

#if canImport(SwiftUI)
import SwiftUI
#endif

/// `PhotoList`: the app on Apple platforms, and a command that measures the same list without a screen.
@main
struct PhotoList {
  static func main() async {
    let arguments = Array(CommandLine.arguments.dropFirst())
    #if canImport(SwiftUI)
    // Xcode passes additional arguments to apps.
    if !["measure", "serve", "--json", "--help", "-h"].contains(arguments.first) { return PhotoListApp.main() }
    #endif
    exit(await ListCommand.run(arguments).rawValue)
  }
}
