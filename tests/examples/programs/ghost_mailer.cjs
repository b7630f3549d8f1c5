// Sends as Ghost does for the transport SMTP: node ghost_mailer.cjs CONFIG RECIPIENT

const { readFileSync } = require("node:fs");
const nodemailer = require("nodemailer");

const [file, to] = process.argv.slice(2);
const { mail } = JSON.parse(readFileSync(file, "utf8"));
if (mail.transport.toLowerCase() !== "smtp") throw new Error(mail.transport);

nodemailer
  .createTransport({ ...mail.options })
  .sendMail({ from: mail.from, to, subject: "Sign in to Shop Blog", html: "<p>Hello</p>", text: "Hello", encoding: "base64" })
  .then((sent) => console.log(sent.response));
