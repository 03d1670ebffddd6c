// An agent built with the official JavaScript SDK: run by Node, never imported.
//
//   node server.mjs message|task|question|failed 1.0|0.3 yes|no
//
// It answers with how many messages this conversation has had, and with what was said now.
// Prints its address, then serves until it is ended.
import { randomUUID } from "node:crypto";
import express from "express";
import { Role, TaskState } from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler } from "@a2a-js/sdk/server/express";

const [kind, version, streaming] = process.argv.slice(2);
const heard = new Map();

const textPart = (text) => ({ content: { $case: "text", value: text }, mediaType: "text/plain", filename: "", metadata: undefined });

function agentMessage(text, contextId, taskId = "") {
  return {
    messageId: randomUUID(), role: Role.ROLE_AGENT, parts: [textPart(text)],
    contextId, taskId, extensions: [], referenceTaskIds: [], metadata: undefined,
  };
}

class Counts {
  async execute({ userMessage, taskId, contextId, task }, bus) {
    const count = (heard.get(contextId) ?? 0) + 1;
    heard.set(contextId, count);
    const text = `${count} ${userMessage.parts.map((part) => part.content.value).join("")}`;
    if (kind === "message") {
      bus.publish(AgentEvent.message(agentMessage(text, contextId)));
      bus.finished();
      return;
    }
    const status = (state, message) => ({ state, message, timestamp: new Date().toISOString() });
    const update = (state, message) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, message), metadata: undefined }));
    bus.publish(AgentEvent.task(task ?? {
      id: taskId, contextId, status: status(TaskState.TASK_STATE_SUBMITTED, undefined),
      history: [userMessage], artifacts: [], metadata: undefined,
    }));
    update(TaskState.TASK_STATE_WORKING, agentMessage("one moment", contextId, taskId));
    if (kind === "question") {
      update(TaskState.TASK_STATE_INPUT_REQUIRED, agentMessage(text, contextId, taskId));
    } else if (kind === "failed") {
      update(TaskState.TASK_STATE_FAILED, agentMessage("out of paper", contextId, taskId));
    } else {
      const artifact = {
        artifactId: "answer", name: "answer", description: "", parts: [textPart(text)],
        extensions: [], metadata: undefined,
      };
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true, metadata: undefined }));
      update(TaskState.TASK_STATE_COMPLETED, undefined);
    }
    bus.finished();
  }

  async cancelTask() {}
}

const app = express();
const server = app.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}/`;
  const card = {
    name: "counts", description: "counts messages", version: "1", provider: undefined,
    documentationUrl: "", iconUrl: "", signatures: [], securitySchemes: {}, securityRequirements: [],
    capabilities: { streaming: streaming === "yes", pushNotifications: false, extensions: [], extendedAgentCard: false },
    defaultInputModes: ["text"], defaultOutputModes: ["text"],
    skills: [{
      id: "count", name: "count", description: "counts", tags: ["count"], examples: [],
      inputModes: [], outputModes: [], securityRequirements: [],
    }],
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: version, tenant: "" }],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Counts());
  const legacyCompat = { enabled: version === "0.3" };
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }));
  app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat }));
  console.log(url);
});
