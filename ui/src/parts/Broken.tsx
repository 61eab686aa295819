// A page that fails says so; all around it goes on.

import { Component, type ReactNode } from "react";

export class Broken extends Component<{ children: ReactNode }, { error: Error | null }> {
  state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div className="problem" role="alert">
        <strong>This page failed</strong>: {error.message}
        <div className="quiet">Load it again; if its address holds something that it cannot read, begin at Home.</div>
      </div>
    );
  }
}
